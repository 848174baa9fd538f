"""Selects the queues that move, given the number of each kind that every member should have."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from resourcepool.queues.planning.eligibility import Kind


def picked(
    kinds: Sequence[Kind],
    homes: Sequence[int | None],
    owners: Sequence[int | None],
    wanted: Sequence[Mapping[Kind, int]],
) -> list[int | None]:
    """Return the member for each queue, so that every member has the wanted numbers and the other queues stay at home.

    Of the queues that could move, first come those whose new member still owns them: their move cancels a request. Then
    come those that their home has asked for and not got yet, as nobody works on them there; then the last in order.

    Args:
        kinds: of the queues, in their order.
        homes: the member that may keep each queue, as its position; None: nobody.
        owners: the member that has each queue now; None: nobody.
        wanted: the number of each kind that every member should have.
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
    """Return how many of a kind each member lacks; negative: has too many. Key None counts unassigned queues."""
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
