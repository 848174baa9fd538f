"""The fair share of each member by its weight, within labels, pins and limits."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm

from resourcepool.queues.planning.assignment import Kind, Member, narrowest_first
from resourcepool.queues.planning.flow import Distribution, chain


def fair_shares(amounts: Mapping[Kind, int], members: Sequence[Member]) -> list[Fraction]:
    """Return each member's fair share of these numbers of queues of each kind.

    All members have the same number per weight, where possible. Members with a lower limit have their limit; members
    that alone may have more queues than that share these among themselves, and the others share the rest. There are
    always whole numbers next to the shares: a plan may differ from them by less than one.

    It is the decomposition algorithm for fair flows (Groenevelt 1991): share evenly; if that overloads some members,
    solve for these members with the queues that only they may have, and separately for the rest.
    """
    shares = [Fraction(0)] * len(members)
    questions = [(Counter(amounts), set(range(len(members))))]
    while questions:
        asked, group = questions.pop()
        level = _level(asked.total(), sorted(group), members)
        overloaded = _overloaded(asked, level, len(members))
        if not overloaded or overloaded == group:
            for index, share in level.items():
                shares[index] = share
        else:
            questions += [_within(asked, overloaded), _without(asked, group, overloaded)]
    return shares


def _level(amount: int, group: Iterable[int], members: Sequence[Member]) -> dict[int, Fraction]:
    """Share an amount by weight, within limits. If all members have reached their limit, some of it is left."""
    level: dict[int, Fraction] = {}
    left, free = amount, list(group)
    while free:
        weight = sum(members[index].weight for index in free)
        even = {index: Fraction(left * members[index].weight, weight) for index in free}
        limits = {index: members[index].limit for index in free}
        capped = {i: Fraction(limit) for i, limit in limits.items() if limit is not None and limit < even[i]}
        level |= capped or even
        left -= int(sum(capped.values()))
        free = [index for index in free if index not in level]
    return level


def _overloaded(amounts: Mapping[Kind, int], level: Mapping[int, Fraction], members: int) -> set[int]:
    """Return the members that must exceed this level if every queue is to be assigned."""
    scale = lcm(*(share.denominator for share in level.values()))
    distribution = Distribution([int(level.get(index, 0) * scale) for index in range(members)], amounts)
    overloaded: set[int] = set()
    for kind in sorted(amounts, key=narrowest_first):
        if _distribute(distribution, kind, amounts[kind] * scale):
            overloaded.update(distribution.reached_from(kind))
    return overloaded


def _distribute(distribution: Distribution, kind: Kind, amount: int) -> int:
    """Give this amount of a kind to its members, by chains where they are full; return what is left over."""
    for member in kind:
        part = min(amount, distribution.room(member))
        if part:
            distribution.add(kind, member, part)
            amount -= part
    while amount:
        found = distribution.reached_from(kind)
        end = next((member for member in found if distribution.room(member)), None)
        if end is None:
            break
        transfers = chain(found, end)
        movable = (distribution.parts[transfer.giver][transfer.kind] for transfer in transfers)
        part = min(amount, distribution.room(end), *movable)
        distribution.shift(transfers, part)
        distribution.add(kind, transfers[-1].giver, part)
        amount -= part
    return amount


def _within(amounts: Mapping[Kind, int], overloaded: set[int]) -> tuple[Counter[Kind], set[int]]:
    return Counter(
        {kind: amount for kind, amount in amounts.items() if overloaded.issuperset(kind)}
    ), overloaded


def _without(
    amounts: Mapping[Kind, int], group: set[int], overloaded: set[int]
) -> tuple[Counter[Kind], set[int]]:
    rest: Counter[Kind] = Counter()
    for kind, amount in amounts.items():
        others = tuple(index for index in kind if index not in overloaded)
        if others:
            rest[others] += amount
    return rest, group - overloaded
