"""The strategies by name, applied within the available room: pins give way, queues that stay take up room (R1.9)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from resourcepool.queues.planning.assignment import Member, QueueInput, Strategy, Targets
from resourcepool.queues.planning.round_robin import round_robin
from resourcepool.queues.planning.sticky import sticky

STRATEGIES: dict[str, Strategy] = {"sticky": sticky, "round_robin": round_robin}


def with_room(
    strategy: Strategy, queues: Sequence[QueueInput], members: Sequence[Member]
) -> tuple[Targets, Collection[int]]:
    """Return where ``strategy`` wants the queues, and the keys of those whose pinned server has no room.

    A queue that no server can take stays with its owner, if that may have it. The rest is planned again each time:
    without the pins of queues that overflow, and with less room where queues stay.
    """
    wishes, overflow, stays = list(queues), set[int](), Targets()
    known: dict[int | None, Member] = {member.pk: member for member in members}
    room = _less_room(members, Counter(queue.owner for queue in queues if not _may_stay(queue, known)))
    while True:
        targets = strategy(wishes, room)
        left = [queue for queue in wishes if targets[queue.pk] is None]
        if full := {queue.pk for queue in left if queue.pin}:
            overflow |= full
            wishes = [replace(queue, pin="") if queue.pk in full else queue for queue in wishes]
        elif kept := {queue.pk: queue.owner for queue in left if queue.owner and _may_stay(queue, known)}:
            stays |= kept
            wishes = [queue for queue in wishes if queue.pk not in kept]
            room = _less_room(room, Counter(kept.values()))
        else:
            return targets | stays, overflow


def _less_room(members: Sequence[Member], taken: Counter[int | None]) -> list[Member]:
    """Return the members with their limits lowered by the queues that stay with them."""
    return [
        member if member.limit is None else replace(member, limit=max(0, member.limit - taken[member.pk]))
        for member in members
    ]


def _may_stay(queue: QueueInput, members: Mapping[int | None, Member]) -> bool:
    owner = members.get(queue.owner)
    return owner is not None and queue.labels.items() <= owner.labels.items()
