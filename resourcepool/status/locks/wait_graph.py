"""Who waits for whom, and who can never go on: pure functions on what was read.

Where there are several permits, a waiter does not need all of their holders to go on: one may be enough. So a circle of
waiters is certain to last only if none of them could go on even if all others released all that they hold (Holt 1972: a
graph that cannot be reduced).
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

Owner = tuple[str, str]  # incarnation of a process, number of a thread or task in it; see ``locks.registry``
Name = tuple[str, str]  # kind, name


class Claim(NamedTuple):
    """So many permits of a name that an owner holds, or waits for."""

    owner: Owner
    name: Name
    permits: int = 1


@dataclass(frozen=True, slots=True)
class WaitCycle:
    """A circle: each owner waits for a name of which the next one holds a permit; the last one's next is the first.

    Attributes:
        names: what each of ``owners`` waits for.
        is_certain: none of them can go on unless one gives up, loses what it holds, or dies.
    """

    owners: tuple[Owner, ...]
    names: tuple[Name, ...]
    is_certain: bool


def deadlocked(wants: Collection[Claim], held: Iterable[Claim], free: Mapping[Name, float]) -> set[Owner]:
    """Return the owners that cannot go on, even if all others go on and then release everything.

    Args:
        free: how many permits of each name are free; of a name that is not in it, as many as anybody wants.
    """
    available: dict[Name, float] = dict(free)
    holds, waits, waiters = defaultdict(list), defaultdict(list), defaultdict(set)
    for claim in held:
        holds[claim.owner].append(claim)
    for claim in wants:
        waits[claim.owner].append(claim)
        waiters[claim.name].add(claim.owner)
    left = set(waits)
    goes_on = deque(owner for owner in holds if owner not in waits)
    asked = deque(left)
    while goes_on or asked:
        if goes_on:
            for _owner, name, permits in holds[goes_on.popleft()]:
                if name in available:
                    available[name] += permits
                asked.extend(waiters[name] & left)
            continue
        owner = asked.popleft()
        if owner in left and any(has_enough(available, claim) for claim in waits[owner]):
            left.remove(owner)
            goes_on.append(owner)
    return left


def has_enough(free: Mapping[Name, float], wanted: Claim) -> bool:
    """Tell whether there are as many free permits as it wants."""
    return wanted.name not in free or wanted.permits <= free[wanted.name]


def wait_cycles(
    wants: Collection[Claim], held: Collection[Claim], free: Mapping[Name, float]
) -> list[WaitCycle]:
    """Return circles of waiters, the certain ones first; each owner is in one of them at most. ``free``: see ``deadlocked``.

    An owner that cannot go on is in a certain circle, waits, directly or through others, for an owner that is, or wants
    more than there is.
    """
    lasting, waits_for = deadlocked(wants, held, free), _edges(wants, held, free)
    found = [WaitCycle(*circle, is_certain=True) for circle in _cycles(_within(waits_for, lasting))]
    others = _within(waits_for, waits_for.keys() - lasting)
    return [*found, *(WaitCycle(*circle, is_certain=False) for circle in _cycles(others))]


Edges = Mapping[Owner, Mapping[Owner, Name]]  # {who waits: {who holds: what}}


def _edges(wants: Iterable[Claim], held: Iterable[Claim], free: Mapping[Name, float]) -> Edges:
    wants, holders = list(wants), defaultdict(set)
    waiting = {claim.owner for claim in wants}
    for owner, name, _permits in held:
        if owner in waiting:
            holders[name].add(owner)
    holding = {owner for some in holders.values() for owner in some}
    found: dict[Owner, dict[Owner, Name]] = {owner: {} for owner in sorted(holding)}
    for claim in sorted(wants):
        if claim.owner in holding and not has_enough(free, claim):
            for other in sorted(holders[claim.name]):
                found[claim.owner].setdefault(other, claim.name)
    return found


def _within(edges: Edges, owners: Set[Owner]) -> dict[Owner, dict[Owner, Name]]:
    return {
        owner: {other: name for other, name in others.items() if other in owners}
        for owner, others in edges.items()
        if owner in owners
    }


def _cycles(edges: dict[Owner, dict[Owner, Name]]) -> Iterable[tuple[tuple[Owner, ...], tuple[Name, ...]]]:
    """Yield circles that share no owner, until none is left."""
    while circle := _find_cycle(edges):
        nexts = [*circle[1:], circle[0]]
        yield tuple(circle), tuple(edges[owner][other] for owner, other in zip(circle, nexts, strict=True))
        edges = _within(edges, edges.keys() - set(circle))


def _find_cycle(edges: Edges) -> list[Owner]:
    """Return a circle, beginning with the least of its owners; []: there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle: list[Owner] = error.args[1][:0:-1]  # it names who is waited for first, and the first one twice
        first = circle.index(min(circle))
        return [*circle[first:], *circle[:first]]
    return []
