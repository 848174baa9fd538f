"""The default strategy: even shares, and as few moves as possible (R1.9)."""

from collections import Counter
from collections.abc import Sequence

from resourcepool.queues.planning.assignment import Member, QueueInput, Targets
from resourcepool.queues.planning.balance import Balance
from resourcepool.queues.planning.eligibility import Kind, kinds_of, narrowest_first
from resourcepool.queues.planning.selection import picked


def sticky(queues: Sequence[QueueInput], members: Sequence[Member]) -> Targets:
    """Leave the queues where they are, except for the moves that even shares require.

    Every member ends up less than one queue from its fair share (see `fair_shares`). Without labels, pins and limits no
    such plan moves fewer queues; with them it may take chains of moves, each the shortest possible, and the minimum is
    not promised. A queue has no server only if none may have it, or if limits leave no room for it whatever else is
    moved.
    """
    kinds = kinds_of(queues, members)
    homes = _homes(queues, kinds, members)
    spread = Balance(Counter(kinds), members)
    for kind, home in zip(kinds, homes, strict=True):
        if home is not None:
            spread.add(kind, home)
    homeless = Counter(kind for kind, home in zip(kinds, homes, strict=True) if home is None and kind)
    for kind in sorted(homeless, key=narrowest_first):
        spread.settle(kind, homeless[kind])
    spread.even_out()
    owners = _positions([queue.owner for queue in queues], members)
    chosen = picked(kinds, homes, owners, spread.parts)
    return {queue.pk: None if at is None else members[at].pk for queue, at in zip(queues, chosen, strict=True)}


def _homes(queues: Sequence[QueueInput], kinds: Sequence[Kind], members: Sequence[Member]) -> list[int | None]:
    """Return the position of the member that may keep each queue, or None."""
    room = [len(queues) if member.limit is None else member.limit for member in members]
    homes = _positions([queue.server for queue in queues], members)
    for index, (home, kind) in enumerate(zip(homes, kinds, strict=True)):
        if home is None:
            continue
        if home in kind and room[home]:
            room[home] -= 1
        else:
            homes[index] = None
    return homes


def _positions(servers: Sequence[int | None], members: Sequence[Member]) -> list[int | None]:
    position: dict[int | None, int] = {member.pk: index for index, member in enumerate(members)}
    return [position.get(server) for server in servers]
