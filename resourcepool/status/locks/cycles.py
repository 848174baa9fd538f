"""Circles of waiters: each holds what another one of them waits for."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from django.db.models import Case, CharField, Count, F, Value, When
from django.utils.translation import gettext as _

from resourcepool.locks.registry import parse_holder
from resourcepool.status.locks.kinds import LockKind, kind_and_name, waiting
from resourcepool.status.locks.lock_status import HELD
from resourcepool.status.locks.wait_graph import Claim, Name, Owner, WaitCycle, wait_cycles
from resourcepool.status.snapshots import Since, fetch_all

MAX_WAITERS_READ = 10_000  # that are looked at
MAX_HOLDERS_READ = 10_000  # of the names of one kind
MAX_CYCLES = 20
KINDS = (LockKind.LOCK, LockKind.SEMAPHORE, LockKind.RWLOCK)  # a condition is not held: anybody may notify


class Wait(NamedTuple):
    """A place in line; ``waited``: seconds."""

    holder: str
    claim: Claim
    waited: float


@dataclass(frozen=True, slots=True)
class Link:
    """One of a circle.

    Attributes:
        who: host, process and thread; ``holder``: as its ticket says.
        kind, waits_for: what it waits for, and the next one holds; ``waited``: for how many seconds.
        held_kind, holds: what it holds, and the one before it waits for.
    """

    who: str
    holder: str
    kind: LockKind
    waits_for: str
    waited: float
    held_kind: LockKind
    holds: str

    def __str__(self) -> str:
        held, wanted = self.held_kind.called(self.holds), self.kind.called(self.waits_for)
        told = {"who": self.who, "held": held, "wanted": wanted}
        return _("%(who)s holds %(held)s and waits for %(wanted)s") % told


@dataclass(frozen=True, slots=True)
class Cycle:
    """A circle of waiters.

    Attributes:
        is_certain: none of them goes on unless its wait times out, it dies, or an operator frees something: even if all
            others gave back all that they hold, there would not be enough permits. False: it may end by itself,
            because somebody outside of it holds a permit, too.

    Not promised: that a certain one lasts where a program releases a semaphore's permit in another thread than the one
    that took it.
    """

    links: tuple[Link, ...]
    is_certain: bool

    ALSO: ClassVar = ("lasts", "said")

    @property
    def lasts(self) -> float:
        """For how many seconds all of them have waited."""
        return min(link.waited for link in self.links)

    @property
    def said(self) -> str:
        """Who holds what and waits for what, in a sentence."""
        return "; ".join(map(str, self.links))

    def is_about(self, kind: LockKind, name: str) -> bool:
        """Tell whether one of them waits for this name."""
        return any((link.kind, link.waits_for) == (kind, name) for link in self.links)


def cycles() -> list[Cycle]:
    """Return the circles at this moment, the certain ones first, up to ``MAX_CYCLES``: four statements at most.

    An owner is a thread, or a task of asyncio; it is named in one circle at most. A circle that ends while it is read
    may be told of nevertheless; it has not lasted long.

    Raises:
        DatabaseUnavailable: they cannot be read.
    """
    waits = list(_waits())
    collecting = {wait.holder for wait in waits}  # what a ticket has got so far may be given to one before it
    held, free = list[Claim](), dict[Name, float]()
    for kind in KINDS:
        names = {wait.claim.name[1] for wait in waits if wait.claim.name[0] == kind}
        for name, count, holder in _held(kind, names):
            free.setdefault(name, 0)
            if not holder or holder in collecting:
                free[name] += count
            else:
                held.append(Claim(_owner(holder), name, count))
    places = {(wait.claim.owner, wait.claim.name): wait for wait in waits}
    return [
        _cycle(wait_cycle, places)
        for wait_cycle in wait_cycles([wait.claim for wait in waits], held, free)[:MAX_CYCLES]
    ]


def short_holder(holder: str) -> str:
    """Return a holder for people: host, process and thread, without the numbers that make it unique."""
    return holder.rpartition("/")[0] or holder


def _waits() -> Iterator[Wait]:
    rows = waiting(KINDS).order_by("pool", "priority", "pk")
    columns = rows.values_list("pool", "holder", "count", Since("asked_at"))
    for line, holder, count, waited in fetch_all(columns[:MAX_WAITERS_READ]):
        yield Wait(holder, Claim(_owner(holder), kind_and_name(line), count), waited)


def _held(kind: LockKind, names: Collection[str]) -> Iterator[tuple[Name, int, str]]:
    """Yield (name, permits, holder or "" where they are free) of those in service; not of names that are cut off."""
    rows = kind.rows().filter(name__in=names)
    if kind.has_permits:
        rows = rows.filter(in_service=True)
    by = Case(When(HELD, then=F("holder")), default=Value(""), output_field=CharField())
    counted = rows.annotate(by=by).values_list("name", "by").order_by("name", "by").annotate(count=Count("pk"))
    found = fetch_all(counted[: MAX_HOLDERS_READ + 1]) if names else []
    cut = found[-1][0] if len(found) > MAX_HOLDERS_READ else None
    for name, holder, count in found:
        if name != cut:
            yield (kind, name), count, holder


def _owner(holder: str) -> Owner:
    incarnation, number = parse_holder(holder)
    return (incarnation, number) if number else ("", holder)


def _cycle(wait_cycle: WaitCycle, places: Mapping[tuple[Owner, Name], Wait]) -> Cycle:
    links = []
    for number, (owner, (kind, waits_for)) in enumerate(zip(wait_cycle.owners, wait_cycle.names, strict=True)):
        wait, (held_kind, holds) = places[owner, (kind, waits_for)], wait_cycle.names[number - 1]
        told = (
            short_holder(wait.holder),
            wait.holder,
            LockKind(kind),
            waits_for,
            wait.waited,
            LockKind(held_kind),
            holds,
        )
        links.append(Link(*told))
    return Cycle(tuple(links), wait_cycle.is_certain)
