"""Deadlocks: wait cycles in which each waiter holds something that another one waits for, and none can continue.

With several permits a waiter may need only one of the holders to release. So a wait cycle is a deadlock only if none of
its waiters could continue even if all other owners released everything (Holt 1972: an irreducible graph).
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import ClassVar, NamedTuple

from django.db.models import Case, CharField, Count, F, Value, When

from resourcepool.locks.registry import parse_holder
from resourcepool.status.badge import Badge, Level
from resourcepool.status.locks.kinds import LockKind, kind_and_name, waiting
from resourcepool.status.locks.lock_status import HELD, LockStatus
from resourcepool.status.snapshots import Since, fetch_all
from resourcepool.translation import gettext as _, gettext_lazy

MAX_WAITERS_READ = 10_000
MAX_HOLDERS_READ = 10_000  # per kind
MAX_CYCLES = 20
# Conditions have no holders: any process may notify.
KINDS = (LockKind.LOCK, LockKind.SEMAPHORE, LockKind.RWLOCK)

Owner = tuple[str, str]  # process incarnation, number of the thread or task; see ``locks.registry``
Name = tuple[str, str]  # kind, name
Edges = Mapping[Owner, Mapping[Owner, Name]]  # {waiter: {holder: name}}


class Claim(NamedTuple):
    """The permits of a name that an owner holds or waits for."""

    owner: Owner
    name: Name
    permits: int = 1


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


DEADLOCKED = Badge(Level.BAD, "deadlock", gettext_lazy("deadlock"))


@dataclass(frozen=True, slots=True)
class Cycle:
    """A deadlock: no waiter can continue unless a wait times out, a process ends, or an operator revokes something.

    Not promised: that a deadlock persists, if a program releases permits of a semaphore in another thread.
    """

    links: tuple[Link, ...]

    badge: ClassVar = DEADLOCKED
    ALSO: ClassVar = ("lasts", "said")

    @property
    def lasts(self) -> float:
        """Seconds for which all of its waiters have waited."""
        return min(link.waited for link in self.links)

    @property
    def said(self) -> str:
        """The whole cycle in one sentence."""
        return "; ".join(map(str, self.links))

    def is_about(self, kind: LockKind, name: str) -> bool:
        return any((link.kind, link.waits_for) == (kind, name) for link in self.links)


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
    if any(cycle.is_about(one.kind, one.name) for cycle in wait_cycles):
        return DEADLOCKED
    if one.kind is LockKind.BARRIER:
        return BARRIER_UP if one.creator else BARRIER_DOWN
    if one.kind is LockKind.CONDITION:
        return HAS_WAITERS if one.waiters else NO_WAITERS
    if one.held:
        return HELD_BADGE if one.held >= one.permits else PARTLY_HELD
    return FREE if one.permits else NO_PERMITS


def cycles() -> list[Cycle]:
    """Return the current deadlocks, at most ``MAX_CYCLES``; four queries at most.

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
    found = islice(wait_cycles([wait.claim for wait in waits], held, free), MAX_CYCLES)
    return [_cycle(wait_cycle, places) for wait_cycle in found]


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


def _cycle(wait_cycle: Mapping[Owner, Name], waits: Mapping[tuple[Owner, Name], Wait]) -> Cycle:
    links, (*_others, (held_kind, holds)) = [], wait_cycle.values()
    for owner, (kind, waits_for) in wait_cycle.items():
        wait = waits[owner, (kind, waits_for)]
        about = (short_holder(wait.holder), wait.holder, LockKind(kind), waits_for, wait.waited)
        links.append(Link(*about, LockKind(held_kind), holds))
        held_kind, holds = kind, waits_for
    return Cycle(tuple(links))


def deadlocked(wants: Collection[Claim], held: Iterable[Claim], free: Mapping[Name, float]) -> set[Owner]:
    """Return the owners that cannot continue even if all others continue and then release everything.

    Args:
        free: number of free permits by name; a missing name has an unlimited number.
    """
    available: dict[Name, float] = dict(free)
    holds, waits, waiters = defaultdict(list), defaultdict(list), defaultdict(set)
    for claim in held:
        holds[claim.owner].append(claim)
    for claim in wants:
        waits[claim.owner].append(claim)
        waiters[claim.name].add(claim.owner)
    blocked = set(waits)
    releasing = deque(owner for owner in holds if owner not in waits)
    to_check = deque(blocked)
    while releasing or to_check:
        if releasing:
            for _by, name, permits in holds[releasing.popleft()]:
                if name in available:
                    available[name] += permits
                to_check.extend(waiters[name] & blocked)
            continue
        owner = to_check.popleft()
        if owner in blocked and any(has_enough(available, claim) for claim in waits[owner]):
            blocked.remove(owner)
            releasing.append(owner)
    return blocked


def has_enough(free: Mapping[Name, float], wanted: Claim) -> bool:
    return wanted.name not in free or wanted.permits <= free[wanted.name]


def wait_cycles(
    wants: Collection[Claim], held: Collection[Claim], free: Mapping[Name, float]
) -> Iterator[dict[Owner, Name]]:
    """Yield {owner: the name that it waits for, of which the next owner holds a permit}, each owner at most once.

    A deadlocked owner is in one of these cycles, waits directly or indirectly for an owner in one, or asks for more
    permits than exist. ``free``: see ``deadlocked``.
    """
    edges = _edges(wants, held, free)
    while cycle := _find_cycle(edges):
        yield {owner: edges[owner][other] for owner, other in zip(cycle, [*cycle[1:], cycle[0]], strict=True)}
        edges = _within(edges, edges.keys() - set(cycle))


def _edges(wants: Collection[Claim], held: Collection[Claim], free: Mapping[Name, float]) -> Edges:
    blocked, holders = deadlocked(wants, held, free), defaultdict(set)
    for owner, name, _permits in held:
        if owner in blocked:
            holders[name].add(owner)
    edges: dict[Owner, dict[Owner, Name]] = {owner: {} for owner in sorted(blocked)}
    for claim in sorted(wants):
        if claim.owner in blocked and not has_enough(free, claim):
            for other in sorted(holders[claim.name]):
                edges[claim.owner].setdefault(other, claim.name)
    return edges


def _within(edges: Edges, owners: Collection[Owner]) -> Edges:
    return {
        owner: {other: name for other, name in others.items() if other in owners}
        for owner, others in edges.items()
        if owner in owners
    }


def _find_cycle(edges: Edges) -> list[Owner]:
    """Return a cycle, starting with its smallest owner; [] if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        cycle: list[Owner] = error.args[1][:0:-1]  # graphlib lists it backwards, with the first owner twice
        first = cycle.index(min(cycle))
        return [*cycle[first:], *cycle[:first]]
    return []
