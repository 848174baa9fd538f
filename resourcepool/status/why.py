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
from resourcepool.events import shown
from resourcepool.history.models import Event
from resourcepool.leases.lock_holders import Locked, lockers
from resourcepool.resources.registry import everything
from resourcepool.resources.state import State, Status, standing_of, state_of
from resourcepool.signals import What
from resourcepool.status.holders import Holding, counts, holdings
from resourcepool.status.locks.of_holder import HeldName, held_by, processes
from resourcepool.status.reading import Since, Until, duration, fetched
from resourcepool.status.waiting import Waiting, waiting

ENDINGS = (
    What.RELEASED,
    What.HANDED_OVER,
    What.LOST,
    What.EXPIRED,
    What.FREED,
    What.FIXED,
    What.QUARANTINED,
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
    what: What
    fence: int
    holder: str
    actor: str
    reason: str
    seconds: float | None
    host: str
    pid: int


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource at one moment of the database's clock; times in seconds.

    Attributes:
        pool: "app.Model".
        row: the resource; ``str(row)`` shows no secret.
        lease: the running one; None: there is none.
        busy_for: until its lease, rest or quarantine ends; 0: none runs.
        back_in: until it returns to service by itself; None: no such time is set.
        checked: since its last validity check; None: never.
        endings: of its last leases, the last one first, as far as the history knows.
        locked: the session that locks its row, usually its holder's inside ``guard``; None: none, or unknown.
    """

    pool: str
    row: Any
    state: State
    lease: Holding | None
    busy_for: float
    back_in: float | None
    checked: float | None
    endings: list[Ending]
    locked: Locked | None = None
    fence: int = 0
    verdict: str = ""

    ALSO: ClassVar = ("because", "reason")

    @property
    def reason(self) -> str:
        """The reason with which it was put away; "" after the end."""
        return standing_of(self.row, self.row.db_now).reason

    @property
    def because(self) -> str:
        """Why it is available or not, in one or two sentences."""
        if self.locked and self.state is State.FREE:
            text = _(
                "Its last lease, of %(holder)s, ran out, but nobody gets it while its row is locked: %(locked)s"
            )
            return str(text % {"holder": self.row.holder, "locked": shown(self.locked)})
        return f"{_standing(self)} {shown(self.locked)}" if self.locked else _standing(self)


@dataclass(frozen=True, slots=True)
class Holder:
    """What a holder, or all of a process, has and waits for; up to ``limit`` of each.

    Attributes:
        holder: its name; of a process, "host/pid".
        leases_total: how many leases it has.
        holds: the locks, semaphores and read-write locks of a process.
    """

    holder: str
    leases: list[Holding]
    waits: list[Waiting]
    leases_total: int = 0
    holds: Sequence[HeldName] = ()


def resource(row: Any) -> Resource:
    """Return the state of ``row`` and the endings of its last leases; raises its model's ``DoesNotExist``."""
    model, now = type(row), _read(row)
    state = state_of(now, now.db_now)
    stuck = lockers(model.pool.using, model, [now.pk]) if now.holder else []
    held = holdings(model, pks=[now.pk], limit=1) if state in (State.LEASED, State.DRAINING) else []
    return Resource(
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


def holder(name: str, models: Sequence[Any], limit: int = 20, *, threads: Sequence[str] = ()) -> Holder:
    """Return the leases and waiters of exactly this holder in the pools of ``models``.

    Args:
        threads: the holders of the process that ``name`` is then: "host/pid".
    """
    whose: Any = {"host" if threads else "holder": name}
    total = counts(models, **whose)
    leases = [one for model in total for one in holdings(model, **whose, limit=limit)]
    waits = [one for model in models for each in threads or [name] for one in waiting(model, each, limit)]
    holds = held_by(processes(name)) if threads else []
    return Holder(name, leases[:limit], waits[:limit], sum(total.values()), holds[:limit])


def endings(row: Any) -> list[Ending]:
    """Return the endings of the last leases of ``row``, the last one first, as far as the history knows."""
    ended = Event.objects.using(router.db_for_read(Event)).of(row).filter(what__in=ENDINGS)
    events = ended.exclude(
        what=What.QUARANTINED, holder=""
    ).with_age()  # an operator's quarantine ends no lease
    return [_ending(event) for event in fetched(events.order_by("-fence", "-pk")[:LAST])]


def _ending(event: Event) -> Ending:
    about = {field.name: getattr(event, field.name) for field in fields(Ending)}
    return Ending(**{**about, "what": What(event.what)})


def _standing(one: Resource) -> str:
    row, reason = one.row, shown(one.row.reason) or _("no reason given")
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


def _return(one: Resource) -> str:
    if one.back_in is not None:
        return _("Back by itself in %s.") % duration(one.back_in)
    command = f"manage.py resourcepool_drain {one.pool} {one.row.pk} --back"
    return _("Until somebody returns it: `%s`.") % command


def _read(row: Any) -> Any:
    model = type(row)
    rows = everything(model).annotate(
        db_now=DbNow(),
        db_left=Until("busy_before"),
        db_back=Until("until"),
        db_checked=Since("checked_at"),
    )
    return retrying(connections[model.pool.using], lambda: rows.get(pk=row.pk))
