"""Which queues move, once it is known how many of each kind every member should have."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from resourcepool.queues.planning.eligibility import Kind


def picked(
    kinds: Sequence[Kind],
    homes: Sequence[int | None],
    owners: Sequence[int | None],
    wanted: Sequence[Mapping[Kind, int]],
) -> list[int | None]:
    """Return who gets each queue, so that every member has what is wanted of it and the others stay at home.

    Of those that could move, first go those whose taker is still their owner: their move is a request taken back. Then
    those that their home has asked for but not got yet, as nobody works on them there; then the last in order.

    Args:
        kinds: of the queues, in their order.
        homes: who may keep each (its position among the members); None: nobody.
        owners: who has each now; None: nobody.
        wanted: how many of each kind every member should have.
    """
    lacking = _lacking(kinds, homes, wanted)
    targets = list(homes)

    def move(queue: int, taker: int) -> None:
        targets[queue] = taker
        lacking[kinds[queue], homes[queue]] += 1
        lacking[kinds[queue], taker] -= 1

    for queue, (kind, home, owner) in enumerate(zip(kinds, homes, owners, strict=True)):
        if lacking[kind, home] < 0 and owner is not None and lacking[kind, owner] > 0:
            move(queue, owner)
    takers = {kind: iter([at for at in kind for _ in range(lacking[kind, at])]) for kind in set(kinds)}
    for queue in _movable_first(homes, owners):
        if targets[queue] == homes[queue] and lacking[kinds[queue], homes[queue]] < 0:
            move(queue, next(takers[kinds[queue]]))
    return targets


def _lacking(
    kinds: Iterable[Kind], homes: Iterable[int | None], wanted: Sequence[Mapping[Kind, int]]
) -> Counter[tuple[Kind, int | None]]:
    """Return how many of a kind each member is short of; below 0: has too many. None has the homeless to give away."""
    lacking: Counter[tuple[Kind, int | None]] = Counter()
    for member, parts in enumerate(wanted):
        for kind, amount in parts.items():
            lacking[kind, member] += amount
            lacking[kind, None] -= amount
    for kind, home in zip(kinds, homes, strict=True):
        if home is not None:
            lacking[kind, home] -= 1
            lacking[kind, None] += 1
    return lacking


def _movable_first(homes: Sequence[int | None], owners: Sequence[int | None]) -> list[int]:
    settled = [queue for queue, home in enumerate(homes) if home is not None and owners[queue] == home]
    known = set(settled)
    return [queue for queue in range(len(homes)) if queue not in known] + settled[::-1]
