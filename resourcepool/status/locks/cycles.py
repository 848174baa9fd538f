"""Wait cycles: each waiter holds something that another waiter of the cycle waits for."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from django.db.models import Case, CharField, Count, F, Value, When

from resourcepool.locks.registry import parse_holder
from resourcepool.status.badge import Badge, Level
from resourcepool.status.locks.kinds import LockKind, kind_and_name, waiting
from resourcepool.status.locks.lock_status import HELD, LockStatus
from resourcepool.status.locks.wait_graph import Claim, Name, Owner, WaitCycle, wait_cycles
from resourcepool.status.snapshots import Since, fetch_all
from resourcepool.translation import gettext as _, gettext_lazy

MAX_WAITERS_READ = 10_000
MAX_HOLDERS_READ = 10_000  # per kind
MAX_CYCLES = 20
KINDS = (
    LockKind.LOCK,
    LockKind.SEMAPHORE,
    LockKind.RWLOCK,
)  # conditions have no holders: any process may notify


class Wait(NamedTuple):
    """A waiting request; ``waited``: seconds."""

    holder: str
    claim: Claim
    waited: float


@dataclass(frozen=True, slots=True)
class Link:
    """A waiter of a cycle.

    Attributes:
        who: host, process and thread; ``holder``: the holder of its ticket.
        kind, waits_for: the name it waits for, held by the next waiter; ``waited``: seconds.
        held_kind, holds: the name it holds, awaited by the previous waiter.
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
        values = {"who": self.who, "held": held, "wanted": wanted}
        return _("%(who)s holds %(held)s and waits for %(wanted)s") % values


@dataclass(frozen=True, slots=True)
class Cycle:
    """A wait cycle.

    Attributes:
        is_certain: a deadlock: no waiter can continue unless a wait times out, a process ends, or an operator revokes
            something; even if all other processes released everything, there would not be enough permits. False: it
            may resolve, because a holder outside of the cycle may release a permit.

    Not promised: that a deadlock persists, if a program releases permits of a semaphore in another thread.
    """

    links: tuple[Link, ...]
    is_certain: bool

    ALSO: ClassVar = ("lasts", "said")

    @property
    def lasts(self) -> float:
        """Seconds for which all of its waiters have waited."""
        return min(link.waited for link in self.links)

    @property
    def said(self) -> str:
        """The whole cycle in one sentence."""
        return "; ".join(map(str, self.links))

    @property
    def badge(self) -> Badge:
        """Its gravity."""
        return DEADLOCKED if self.is_certain else POSSIBLE_DEADLOCK

    def is_about(self, kind: LockKind, name: str) -> bool:
        """Whether one of its waiters waits for this name."""
        return any((link.kind, link.waits_for) == (kind, name) for link in self.links)


DEADLOCKED = Badge(Level.BAD, "deadlock", gettext_lazy("deadlock"))
POSSIBLE_DEADLOCK = Badge(Level.WARN, "possible_deadlock", gettext_lazy("possible deadlock"))
HELD_BADGE = Badge(Level.BUSY, "held", gettext_lazy("held"))
PARTLY_HELD = Badge(Level.BUSY, "partly_held", gettext_lazy("partly held"))
FREE = Badge(Level.OK, "free", gettext_lazy("free"))
NO_PERMITS = Badge(Level.BAD, "no_permits", gettext_lazy("no permits"))
BARRIER_UP = Badge(Level.BUSY, "blocking", gettext_lazy("blocking"))
BARRIER_DOWN = Badge(Level.IDLE, "removed", gettext_lazy("removed"))
HAS_WAITERS = Badge(Level.BUSY, "has_waiters", gettext_lazy("has waiters"))
NO_WAITERS = Badge(Level.IDLE, "no_waiters", gettext_lazy("no waiters"))


def lock_badge(one: LockStatus, wait_cycles: Collection[Cycle] = ()) -> Badge:
    """Return the state of a lock; ``wait_cycles``: all current ones; conditions and barriers have none."""
    if any(cycle.is_certain and cycle.is_about(one.kind, one.name) for cycle in wait_cycles):
        return DEADLOCKED
    if one.kind is LockKind.BARRIER:
        return BARRIER_UP if one.creator else BARRIER_DOWN
    if one.kind is LockKind.CONDITION:
        return HAS_WAITERS if one.waiters else NO_WAITERS
    if one.held:
        return HELD_BADGE if one.held >= one.permits else PARTLY_HELD
    return FREE if one.permits else NO_PERMITS


def cycles() -> list[Cycle]:
    """Return the current wait cycles, deadlocks first, at most ``MAX_CYCLES``; four queries at most.

    A thread or asyncio task is in one returned cycle at most. A cycle that ends while it is read may still be returned;
    it has not lasted long then.

    Raises:
        DatabaseUnavailable: they cannot be read.
    """
    waits = list(_waits())
    # A waiting request for several permits may hold some, which can still pass to a waiter before it.
    collecting = {wait.holder for wait in waits}
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
    """Return host, process and thread of a holder, without its unique number."""
    return holder.rpartition("/")[0] or holder


def _waits() -> Iterator[Wait]:
    rows = waiting(KINDS).order_by("pool", "priority", "pk")
    columns = rows.values_list("pool", "holder", "count", Since("asked_at"))
    for line, holder, count, waited in fetch_all(columns[:MAX_WAITERS_READ]):
        yield Wait(holder, Claim(_owner(holder), kind_and_name(line), count), waited)


def _held(kind: LockKind, names: Collection[str]) -> Iterator[tuple[Name, int, str]]:
    """Yield (name, permits, holder or "" if free) of permits in service, except of a name cut off by the limit."""
    rows = kind.rows().filter(name__in=names)
    if kind.has_permits:
        rows = rows.filter(in_service=True)
    by = Case(When(HELD, then=F("holder")), default=Value(""), output_field=CharField())
    counted = rows.annotate(by=by).values_list("name", "by").order_by("name", "by").annotate(count=Count("pk"))
    fetch_rows = fetch_all(counted[: MAX_HOLDERS_READ + 1]) if names else []
    cut_off = fetch_rows[-1][0] if len(fetch_rows) > MAX_HOLDERS_READ else None
    for name, holder, count in fetch_rows:
        if name != cut_off:
            yield (kind, name), count, holder


def _owner(holder: str) -> Owner:
    incarnation, number = parse_holder(holder)
    return (incarnation, number) if number else ("", holder)


def _cycle(wait_cycle: WaitCycle, waits: Mapping[tuple[Owner, Name], Wait]) -> Cycle:
    links = []
    for number, (owner, name) in enumerate(zip(wait_cycle.owners, wait_cycle.names, strict=True)):
        wait, (kind, waits_for), (held_kind, holds) = waits[owner, name], name, wait_cycle.names[number - 1]
        links.append(
            Link(
                who=short_holder(wait.holder),
                holder=wait.holder,
                kind=LockKind(kind),
                waits_for=waits_for,
                waited=wait.waited,
                held_kind=LockKind(held_kind),
                holds=holds,
            )
        )
    return Cycle(tuple(links), wait_cycle.is_certain)
