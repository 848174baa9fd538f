"""Explains a resource (its lease, or why it has none) or a holder (its leases, and why it still waits)."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from django.db import connections, router

from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.db.row_locks import Locked, lockers
from resourcepool.events import localized
from resourcepool.history.models import ENDED, Event
from resourcepool.resources.registry import all_resources
from resourcepool.resources.state import State, Status, state_details, state_of
from resourcepool.signals import EventKind
from resourcepool.status.locks.summary import HeldName, held_by, processes
from resourcepool.status.resources.holders import ActiveLease, active_leases, lease_counts
from resourcepool.status.resources.waiting import Lines, Waiting
from resourcepool.status.snapshots import Since, Until, fetch_all
from resourcepool.status.times import ago, duration, timestamp_with_age
from resourcepool.translation import gettext as _, gettext_noop

MAX_ENDINGS = 5
LEAVES = gettext_noop("It goes out of service when its lease ends: %s.")
AFTER_ITS_LEASE = {
    Status.RESERVED: gettext_noop("It will be reserved when its lease ends: %s."),
    Status.QUARANTINED: gettext_noop("It will be quarantined when its lease ends: %s."),
    Status.RETIRED: gettext_noop("It will be retired when its lease ends: %s."),
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The event with which a lease ended ``age`` seconds ago, after it was held for ``seconds``."""

    at: datetime.datetime
    age: float
    what: EventKind
    fence: int
    holder: str
    actor: str
    reason: str
    seconds: float | None
    host: str
    pid: int


@dataclass(frozen=True, slots=True)
class ResourceExplanation:
    """One resource at one moment of the database's clock; times in seconds.

    Attributes:
        pool: "app.Model".
        row: the resource; ``str(row)`` shows no secret.
        lease: the active one, if any.
        busy_for: until its lease, cool-down or quarantine ends; 0 without one.
        back_in: until it returns to service by itself; None if no time is set.
        checked: since its last health check; None: never.
        endings: the ends of its last leases, the latest first, as far as they are in the history.
        locked: the session that locks its row, usually its holder's inside ``guard``; None: none, or unknown.
    """

    pool: str
    row: Any
    state: State
    lease: ActiveLease | None
    busy_for: float
    back_in: float | None
    checked: float | None
    endings: list[Ending]
    locked: Locked | None = None
    fence: int = 0
    verdict: str = ""

    ALSO: ClassVar = ("explanation", "reason")

    @property
    def reason(self) -> str:
        """The reason given for its status (quarantined, reserved, ..); "" once that has ended."""
        return state_details(self.row, self.row.db_now).reason

    @property
    def explanation(self) -> str:
        """Why it is available or not, in one or two sentences."""
        if self.locked and self.state is State.FREE:
            text = _(
                "Its last lease, of %(holder)s, expired, but it cannot be leased while its row is locked: %(locked)s"
            )
            return str(text % {"holder": self.row.holder, "locked": localized(self.locked)})
        return f"{_explained(self)} {localized(self.locked)}" if self.locked else _explained(self)


@dataclass(frozen=True, slots=True)
class HolderExplanation:
    """The leases and waiters of a holder, or of all holders of a process; up to ``limit`` of each.

    Attributes:
        holder: its name; "host/pid" for a process.
        leases_total: the number of all its leases.
        holds: the locks, semaphores and read-write locks of a process.
    """

    holder: str
    leases: list[ActiveLease]
    waits: list[Waiting]
    leases_total: int = 0
    holds: Sequence[HeldName] = ()


def resource(row: Any) -> ResourceExplanation:
    """Return the status of ``row`` and the ends of its last leases; raises its model's ``DoesNotExist``."""
    model, now = type(row), _read(row)
    state = state_of(now, now.db_now)
    stuck = lockers(model.pool.using, model, [now.pk]) if now.holder else []
    held = active_leases(model, pk=now.pk) if state in (State.LEASED, State.DRAINING) else []
    return ResourceExplanation(
        pool=model._meta.label,
        row=now,
        state=state,
        lease=held[0] if held else None,
        busy_for=max(0.0, now.db_left),
        back_in=now.db_back if now.db_back is not None and now.db_back > 0 else None,
        checked=now.db_checked,
        endings=endings(now),
        locked=stuck[0] if stuck else None,
        fence=now.fence,
        verdict=now.verdict,
    )


def facts(
    one: ResourceExplanation,
    left: Callable[[float], str] = lambda seconds: _("%s, unless renewed") % duration(seconds),
) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of what a person asks about a resource; ``left``: formats the time until a lease expires."""
    yield _("state"), str(one.state.label)
    if lease := one.lease:
        yield _("held by"), lease.holder
        if lease.host:
            yield _("process"), f"{lease.host} pid {lease.pid}"
        yield _("since"), timestamp_with_age(lease.since, lease.held)
        yield _("expires in"), left(lease.expires_in)
        if lease.renewal:
            yield _("last renewal"), str(lease.renewal)
        yield _("fence"), str(lease.fence)
    yield _("why"), one.explanation
    verdict = one.row.get_verdict_display() or _("none")
    yield _("last check"), verdict if one.checked is None else f"{verdict}, {ago(one.checked)}"


def holder(
    name: str, models: Sequence[Any], limit: int = 20, *, threads: Sequence[str] = ()
) -> HolderExplanation:
    """Return the leases and waiters with exactly this holder in the pools of ``models``.

    Args:
        threads: the holders of a process, if ``name`` is the "host/pid" of one.
    """
    whose: Any = {"host" if threads else "holder": name}
    total = lease_counts(models, **whose)
    leases = [lease for model in total for lease in active_leases(model, **whose, limit=limit)]
    waits = Lines(models, ()).of_holders(threads or [name], limit)
    holds = held_by(processes(name)) if threads else []
    return HolderExplanation(name, leases[:limit], waits, sum(total.values()), holds[:limit])


def endings(row: Any) -> list[Ending]:
    """Return the ends of the last leases of ``row``, the latest first, as far as they are in the history."""
    ended = Event.objects.using(router.db_for_read(Event)).of(row).filter(what__in=sorted(ENDED))
    # Without quarantines by operators, which end no lease.
    events = ended.exclude(what=EventKind.QUARANTINED, holder="").with_age()
    return [_ending(event) for event in fetch_all(events.order_by("-fence", "-pk")[:MAX_ENDINGS])]


def _ending(event: Event) -> Ending:
    about = {field.name: getattr(event, field.name) for field in fields(Ending)}
    return Ending(**{**about, "what": EventKind(event.what)})


def _explained(resource: ResourceExplanation) -> str:
    row, reason = resource.row, localized(resource.row.reason) or _("no reason given")
    match resource.state:
        case State.FREE if row.holder:
            text = _(
                "It is free: its last lease, of %s, expired without a release (the holder crashed or lost contact)."
            )
            return str(text % row.holder)
        case State.FREE:
            return _("It is free: the next matching request may lease it.")
        case State.LEASED:
            return _("It is leased until the holder releases it, or the lease expires without a renewal.")
        case State.COOLING:
            return _("It is cooling down after its last lease: %s left.") % duration(resource.busy_for)
        case State.QUARANTINED:
            numbers = {
                "time": duration(resource.back_in or resource.busy_for),
                "reason": reason,
                "strikes": row.strikes,
            }
            return _("It is quarantined for another %(time)s: %(reason)s (strikes: %(strikes)d).") % numbers
        case State.DRAINING:
            text = _(AFTER_ITS_LEASE.get(row.status, LEAVES))
        case State.RESERVED:
            text = _("It is reserved: %s.")
        case State.RETIRED:
            return _("It is retired: %s.") % reason
        case _:
            text = _("It is out of service: %s.")
    return f"{text % reason} {_return(resource)}"


def _return(resource: ResourceExplanation) -> str:
    if resource.back_in is not None:
        return _("It returns to service in %s.") % duration(resource.back_in)
    command = f"manage.py resourcepool_drain {resource.pool} {resource.row.pk} --back"
    return _("Return it with `%s`.") % command


def _read(row: Any) -> Any:
    model = type(row)
    rows = all_resources(model).annotate(
        db_now=DbNow(), db_left=Until("busy_before"), db_back=Until("until"), db_checked=Since("checked_at")
    )
    return retrying(connections[model.pool.using], lambda: rows.get(pk=row.pk))
