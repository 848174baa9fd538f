"""Explains a resource (its lease, or why it has none) or a holder (its leases, and why its waiters wait)."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from django.db import connections, router
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow
from resourcepool.events import localized
from resourcepool.history.models import Event
from resourcepool.leases.lock_holders import Locked, lockers
from resourcepool.resources.registry import all_resources
from resourcepool.resources.state import State, Status, state_details, state_of
from resourcepool.signals import EventKind
from resourcepool.status.holders import ActiveLease, active_leases, lease_counts
from resourcepool.status.locks.held_by_process import HeldName, held_by, processes
from resourcepool.status.snapshots import Since, Until, duration, fetch_all
from resourcepool.status.waiters import WaiterStatus, waiters_of

ENDINGS = (
    EventKind.RELEASED,
    EventKind.HANDED_OVER,
    EventKind.LOST,
    EventKind.EXPIRED,
    EventKind.REVOKED,
    EventKind.FIXED,
    EventKind.QUARANTINED,
)
LAST = 5  # endings shown
LEAVES = gettext_noop("It leaves service when its lease ends: %s.")
AFTER_ITS_LEASE = {
    Status.RESERVED: gettext_noop("When its lease ends it is reserved: %s."),
    Status.QUARANTINED: gettext_noop("When its lease ends it is quarantined: %s."),
    Status.RETIRED: gettext_noop("When its lease ends it is retired: %s."),
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The event with which a lease ended, ``age`` seconds ago; ``seconds``: for how long it was held."""

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
        lease: the running one; None: there is none.
        busy_for: until its lease, rest or quarantine ends; 0: none runs.
        back_in: until it returns to service by itself; None: no such time is set.
        checked: since its last health check; None: never.
        endings: of its last leases, the last one first, as far as the history knows.
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
        """The reason with which it was put away; "" after the end."""
        return state_details(self.row, self.row.db_now).reason

    @property
    def explanation(self) -> str:
        """Why it is available or not, in one or two sentences."""
        if self.locked and self.state is State.FREE:
            text = _(
                "Its last lease, of %(holder)s, ran out, but nobody gets it while its row is locked: %(locked)s"
            )
            return str(text % {"holder": self.row.holder, "locked": localized(self.locked)})
        return f"{_standing(self)} {localized(self.locked)}" if self.locked else _standing(self)


@dataclass(frozen=True, slots=True)
class HolderExplanation:
    """What a holder, or all of a process, has and waits for; up to ``limit`` of each.

    Attributes:
        holder: its name; of a process, "host/pid".
        leases_total: how many leases it has.
        holds: the locks, semaphores and read-write locks of a process.
    """

    holder: str
    leases: list[ActiveLease]
    waits: list[WaiterStatus]
    leases_total: int = 0
    holds: Sequence[HeldName] = ()


def resource(row: Any) -> ResourceExplanation:
    """Return the state of ``row`` and the endings of its last leases; raises its model's ``DoesNotExist``."""
    model, now = type(row), _read(row)
    state = state_of(now, now.db_now)
    stuck = lockers(model.pool.using, model, [now.pk]) if now.holder else []
    held = active_leases(model, pks=[now.pk], limit=1) if state in (State.LEASED, State.DRAINING) else []
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


def holder(
    name: str, models: Sequence[Any], limit: int = 20, *, threads: Sequence[str] = ()
) -> HolderExplanation:
    """Return the leases and waiters of exactly this holder in the pools of ``models``.

    Args:
        threads: the holders of the process that ``name`` is then: "host/pid".
    """
    whose: Any = {"host" if threads else "holder": name}
    total = lease_counts(models, **whose)
    leases = [one for model in total for one in active_leases(model, **whose, limit=limit)]
    waits = [one for model in models for each in threads or [name] for one in waiters_of(model, each, limit)]
    holds = held_by(processes(name)) if threads else []
    return HolderExplanation(name, leases[:limit], waits[:limit], sum(total.values()), holds[:limit])


def endings(row: Any) -> list[Ending]:
    """Return the endings of the last leases of ``row``, the last one first, as far as the history knows."""
    ended = Event.objects.using(router.db_for_read(Event)).of(row).filter(what__in=ENDINGS)
    events = ended.exclude(
        what=EventKind.QUARANTINED, holder=""
    ).with_age()  # an operator's quarantine ends no lease
    return [_ending(event) for event in fetch_all(events.order_by("-fence", "-pk")[:LAST])]


def _ending(event: Event) -> Ending:
    about = {field.name: getattr(event, field.name) for field in fields(Ending)}
    return Ending(**{**about, "what": EventKind(event.what)})


def _standing(one: ResourceExplanation) -> str:
    row, reason = one.row, localized(one.row.reason) or _("no reason given")
    match one.state:
        case State.FREE if row.holder:
            text = _(
                "It is free: the last lease, of %s, ran out without being released (its holder died or was cut off)."
            )
            return str(text % row.holder)
        case State.FREE:
            return _("It is free: whoever asks next may get it.")
        case State.LEASED:
            return _(
                "It is leased; it comes free when it is released, or when the lease runs out without a renewal."
            )
        case State.COOLING:
            return _("It rests after its last lease, for another %s.") % duration(one.busy_for)
        case State.QUARANTINED:
            numbers = {"time": duration(one.back_in or one.busy_for), "reason": reason, "strikes": row.strikes}
            return _("It is in quarantine for another %(time)s: %(reason)s (strikes: %(strikes)d).") % numbers
        case State.DRAINING:
            text = _(AFTER_ITS_LEASE.get(row.status, LEAVES))
        case State.RESERVED:
            text = _("It is reserved: %s.")
        case State.RETIRED:
            return _("It is retired: %s.") % reason
        case _:
            text = _("It is out of service: %s.")
    return f"{text % reason} {_return(one)}"


def _return(one: ResourceExplanation) -> str:
    if one.back_in is not None:
        return _("Back by itself in %s.") % duration(one.back_in)
    command = f"manage.py resourcepool_drain {one.pool} {one.row.pk} --back"
    return _("Until somebody returns it: `%s`.") % command


def _read(row: Any) -> Any:
    model = type(row)
    rows = all_resources(model).annotate(
        db_now=DbNow(),
        db_left=Until("busy_before"),
        db_back=Until("until"),
        db_checked=Since("checked_at"),
    )
    return retrying(connections[model.pool.using], lambda: rows.get(pk=row.pk))
