"""Finds wait cycles and deadlocks: pure functions.

With several permits a waiter may need only one of the holders to release. So a wait cycle is a deadlock only if none of
its waiters could continue even if all other owners released everything (Holt 1972: an irreducible graph).
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

Owner = tuple[str, str]  # process incarnation, number of the thread or task; see ``locks.registry``
Name = tuple[str, str]  # kind, name


class Claim(NamedTuple):
    """The permits of a name that an owner holds or waits for."""

    owner: Owner
    name: Name
    permits: int = 1


@dataclass(frozen=True, slots=True)
class WaitCycle:
    """A cycle in which each owner waits for a name of which the next owner, or for the last the first, holds a permit.

    Attributes:
        names: the names that the ``owners`` wait for.
        is_certain: whether it is a deadlock.
    """

    owners: tuple[Owner, ...]
    names: tuple[Name, ...]
    is_certain: bool


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
            for _owner, name, permits in holds[releasing.popleft()]:
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
    """Whether enough permits are free for this request."""
    return wanted.name not in free or wanted.permits <= free[wanted.name]


def wait_cycles(
    wants: Collection[Claim], held: Collection[Claim], free: Mapping[Name, float]
) -> list[WaitCycle]:
    """Return wait cycles, deadlocks first; each owner is in at most one. ``free``: see ``deadlocked``.

    A deadlocked owner is in a certain cycle, waits directly or indirectly for an owner in one, or asks for more permits
    than exist.
    """
    blocked, waits_for = deadlocked(wants, held, free), _edges(wants, held, free)
    certain = [WaitCycle(*cycle, is_certain=True) for cycle in _cycles(_within(waits_for, blocked))]
    others = _within(waits_for, waits_for.keys() - blocked)
    return [*certain, *(WaitCycle(*cycle, is_certain=False) for cycle in _cycles(others))]


Edges = Mapping[Owner, Mapping[Owner, Name]]  # {waiter: {holder: name}}


def _edges(wants: Iterable[Claim], held: Iterable[Claim], free: Mapping[Name, float]) -> Edges:
    wants, holders = list(wants), defaultdict(set)
    waiting = {claim.owner for claim in wants}
    for owner, name, _permits in held:
        if owner in waiting:
            holders[name].add(owner)
    holding = {owner for owners in holders.values() for owner in owners}
    edges: dict[Owner, dict[Owner, Name]] = {owner: {} for owner in sorted(holding)}
    for claim in sorted(wants):
        if claim.owner in holding and not has_enough(free, claim):
            for other in sorted(holders[claim.name]):
                edges[claim.owner].setdefault(other, claim.name)
    return edges


def _within(edges: Edges, owners: Set[Owner]) -> dict[Owner, dict[Owner, Name]]:
    return {
        owner: {other: name for other, name in others.items() if other in owners}
        for owner, others in edges.items()
        if owner in owners
    }


def _cycles(edges: dict[Owner, dict[Owner, Name]]) -> Iterable[tuple[tuple[Owner, ...], tuple[Name, ...]]]:
    """Yield disjoint cycles until none is left."""
    while cycle := _find_cycle(edges):
        successors = [*cycle[1:], cycle[0]]
        yield tuple(cycle), tuple(edges[owner][other] for owner, other in zip(cycle, successors, strict=True))
        edges = _within(edges, edges.keys() - set(cycle))


def _find_cycle(edges: Edges) -> list[Owner]:
    """Return a cycle, starting with its smallest owner; [] if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        cycle: list[Owner] = error.args[1][:0:-1]  # graphlib lists it backwards, with the first owner twice
        first = cycle.index(min(cycle))
        return [*cycle[first:], *cycle[:first]]
    return []
