"""All who wait, for a resource or a lock: since when, their place in line, and why they are not served."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from django.db.models import Avg, Q

from resourcepool.db.dialect import DbLater
from resourcepool.history.models import Sample
from resourcepool.resources.registry import resource_models
from resourcepool.resources.state import State
from resourcepool.status.locks.kinds import LockKind, kind_and_name, using
from resourcepool.status.locks.lock_status import LockStatus, status_of
from resourcepool.status.locks.summary import state_sentence
from resourcepool.status.resources.waiters import matching, wants, why_not_served
from resourcepool.status.snapshots import Since, fetch_all
from resourcepool.status.times import duration
from resourcepool.translation import gettext as _
from resourcepool.waiting.models import Ticket, pool_name

PER_PAGE = 25
MAX_PAGE = 400
MAX_IN_LINES = 10_000  # waiters whose places are counted
RATE_OVER = 900.0  # seconds


@dataclass(frozen=True, slots=True)
class Waiting:
    """One waiter; times in seconds.

    Attributes:
        ticket: its ticket.
        model, key: the lock that it waits for, or the model of the pool and "".
        what: the pool or the lock, for people. ``wants``: selectors and number, "": any one.
        waited: since its request.
        place: its place in line, from 1; 0: beyond the first ``MAX_IN_LINES``.
        expected: until it is its turn, by the leases of the last 15 minutes; None: unknown.
        why: why it is not served.
    """

    ticket: int
    model: Any
    key: str
    what: str
    holder: str
    wants: str
    waited: float
    place: int
    expected: float | None
    why: str

    ALSO: ClassVar = ("said",)

    @property
    def said(self) -> str:
        """All of this in two or three sentences, for people."""
        what = f"{self.what} ({self.wants})" if self.wants else self.what
        values = {"what": what, "time": duration(self.waited), "place": self.place, "why": self.why}
        return _("Waiting for %(what)s for %(time)s, number %(place)d in line. %(why)s") % values


class WaitingPage(NamedTuple):
    """The waiters of one page; ``total``: how many there are; ``has_more``: whether there is another page."""

    waiters: Sequence[Waiting]
    total: int
    has_more: bool


@dataclass(frozen=True)
class Lines:
    """The lines that a user may see.

    Attributes:
        models: of the pools.
        kinds: of the locks.
        of: only the line of this pool ("resourcepool.Proxy") or lock ("lock orders"); "": all.
    """

    models: Collection[Any]
    kinds: Collection[LockKind]
    of: str = ""

    @cached_property
    def pools(self) -> Mapping[str, Any]:
        """{pool of tickets: model}."""
        return {pool_name(model): model for model in self.models}

    def page(self, number: int = 1) -> WaitingPage:
        """Return a page of the waiters, the longest wait first; raises DatabaseUnavailable."""
        end = max(1, min(number, MAX_PAGE)) * PER_PAGE
        oldest, total = self._oldest(end + 1), sum(some.count() for some in self._tickets())
        return WaitingPage([*self.waiting(oldest[end - PER_PAGE : end])], total, len(oldest) > end)

    def longest(self) -> Waiting | None:
        """Return the waiter with the longest wait; None: there is none."""
        return next(iter(self.waiting(self._oldest(1)[:1])), None)

    def of_holders(self, holders: Collection[str], limit: int) -> list[Waiting]:
        """Return up to ``limit`` waiters with exactly these holders, by pool in the order of service."""
        waits = [some.filter(holder__in=holders).order_by("pool", "priority", "pk") for some in self._tickets()]
        return [*self.waiting([row for some in waits for row in fetch_all(some[:limit])][:limit])]

    def _tickets(self) -> list[Any]:
        """Return the tickets of these lines, one queryset per database."""
        databases = {model.pool.using for model in self.models} | ({using()} if self.kinds else set())
        tickets = [Ticket.objects.using(alias).waiting().filter(self._chosen(alias)) for alias in databases]
        return [some.annotate(waited=Since("asked_at")) for some in tickets]

    def _oldest(self, count: int) -> list[Any]:
        oldest = [row for some in self._tickets() for row in fetch_all(some.order_by("asked_at", "pk")[:count])]
        return sorted(oldest, key=lambda row: -row.waited)

    def is_of_lock(self, pool: str) -> bool:
        """Return whether tickets of this ``pool`` wait for a lock."""
        return any(pool.startswith(kind.prefix) for kind in self.kinds)

    def _chosen(self, alias: str) -> Q:
        wanted = Q(pool__in=[pool for pool, model in self.pools.items() if model.pool.using == alias])
        for kind in self.kinds if alias == using() else ():
            wanted |= Q(pool__begins=kind.prefix)
        return wanted & Q(pool=self._line()) if self.of else wanted

    def _line(self) -> str:
        kind, space, name = self.of.partition(" ")
        return LockKind(kind).ticket_pool(name) if space and kind in list(LockKind) else self.of.lower()

    def waiting(self, rows: Sequence[Any]) -> Iterable[Waiting]:
        """Yield the waiters with these tickets, which are annotated with ``waited``."""
        places, rates = _places(rows), _leases_per_second({row.pool for row in rows} & self.pools.keys())
        counts, locks = cache(matching), _locks({row.pool for row in rows} - self.pools.keys())
        for row in rows:
            place = places.get((row._state.db, row.pk), 0)
            if model := self.pools.get(row.pool):
                yield _for_resource(row, model, place, counts(model, row.selector), rates.get(row.pool, 0.0))
            else:
                yield _for_lock(row, locks[row.pool], place)


def _for_resource(row: Any, model: Any, place: int, counts: Mapping[str, Any], rate: float) -> Waiting:
    can_come = place and rate and any(counts.get(f"n_{state.value}") for state in State)
    return Waiting(
        *(row.pk, model, "", str(model._meta.verbose_name_plural), row.holder),
        wants=wants(row),
        waited=row.waited,
        place=place,
        expected=place / rate if can_come else None,
        why=why_not_served(row.count, max(0, place - 1), counts),
    )


def _for_lock(row: Any, lock: LockStatus, place: int) -> Waiting:
    return Waiting(
        *(row.pk, lock.kind.model, lock.kind.page_key(lock.name), lock.called, row.holder),
        wants=_("%d at once") % row.count if row.count > 1 else "",
        waited=row.waited,
        place=place,
        expected=None,
        why=state_sentence(lock),
    )


def explain(ticket: Ticket) -> str:
    """Return the place of a ticket in its line, and why it is not served; "" if it does not wait."""
    lines = Lines(resource_models(), tuple(LockKind))
    rows = Ticket.objects.using(ticket._state.db).waiting().filter(pk=ticket.pk)
    known = [
        row
        for row in fetch_all(rows.annotate(waited=Since("asked_at")))
        if row.pool in lines.pools or lines.is_of_lock(row.pool)
    ]
    return " ".join(one.said for one in lines.waiting(known))


def _places(rows: Sequence[Any]) -> dict[tuple[str, int], int]:
    """Return {(database, ticket): its place in its line}."""
    places: dict[tuple[str, int], int] = {}
    for alias in {row._state.db for row in rows}:
        pools = {row.pool for row in rows if row._state.db == alias}
        tickets = Ticket.objects.using(alias).waiting().filter(pool__in=pools)
        line = tickets.order_by("pool", "priority", "pk").values_list("pool", "pk")[:MAX_IN_LINES]
        for _pool, group in groupby(fetch_all(line), key=lambda pair: pair[0]):
            places |= {(alias, pk): place for place, (_pool, pk) in enumerate(group, start=1)}
    return places


def _leases_per_second(pools: Collection[str]) -> dict[str, float]:
    """Return {pool: leases acquired per second, by the samples of the last 15 minutes}."""
    samples = Sample.objects.filter(pool__in=pools, minute__gt=DbLater(-RATE_OVER)).order_by()
    per_minute = samples.values_list("pool").annotate(Avg("acquired"))
    return {pool: rate / 60 for pool, rate in fetch_all(per_minute)} if pools else {}


def _locks(pools: Collection[str]) -> dict[str, LockStatus]:
    names: dict[LockKind, dict[str, str]] = {}
    for pool in pools:
        kind, name = kind_and_name(pool)
        names.setdefault(kind, {})[name] = pool
    return {
        of_kind[name]: status
        for kind, of_kind in names.items()
        for name, status in status_of(kind, list(of_kind)).items()
    }
