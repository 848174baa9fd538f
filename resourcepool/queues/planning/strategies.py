"""The strategies by name, and their use within the limits of the servers."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import gcd

from resourcepool.queues.planning.assignment import Member, QueueInput, Strategy, Targets, capacities, kinds_of
from resourcepool.queues.planning.sticky import sticky


def round_robin(queues: Sequence[QueueInput], members: Sequence[Member]) -> Targets:
    """Give the queues, in their order, to the members in turn, regardless of their present owners.

    A round has as many passes over the members as the greatest weight (after division by the common divisor), and a
    member takes part in as many of them as its weight: with A of weight 2 and B of weight 1 the order is A B A, A B A.
    A member that may not have a queue, or is full, is skipped. A queue that no member can have stays unowned.

    Not promised: few moves (of 64 queues on 8 servers 53 or 54 move when one leaves, with `sticky` 8), and room for a
    later queue with fewer candidates.
    """
    turn, room = _Turn([member.weight for member in members]), capacities(members, len(queues))
    targets: Targets = {queue.pk: None for queue in queues}
    for queue, kind in zip(queues, kinds_of(queues, members), strict=True):
        if able := [index for index in kind if room[index]]:
            chosen = turn.take(able)
            targets[queue.pk] = members[chosen].pk
            room[chosen] -= 1
    return targets


class _Turn:
    """The weighted turn. Step s belongs to member s % members, in pass s // members of the round."""

    def __init__(self, weights: Sequence[int]) -> None:
        common = gcd(*weights) or 1
        self.weights = [weight // common for weight in weights]
        self.round = max(self.weights, default=0) * len(weights)
        self.step = 0

    def take(self, able: Sequence[int]) -> int:
        """Return the next of these members, and advance to the step after it."""
        step = min(map(self._next_step, able))
        self.step = (step + 1) % self.round
        return step % len(self.weights)

    def _next_step(self, index: int) -> int:
        members = len(self.weights)
        step = self.step + (index - self.step) % members
        return step if step // members < self.weights[index] else self.round + index


STRATEGIES: dict[str, Strategy] = {"sticky": sticky, "round_robin": round_robin}


def plan_within_limits(
    strategy: Strategy, queues: Sequence[QueueInput], members: Sequence[Member]
) -> tuple[Targets, Collection[int]]:
    """Return the targets of the queues, and the keys of queues whose pinned server has no room.

    A queue that no server can take stays with its owner, if the owner may have it. Then the rest is planned again,
    without the pins of queues that overflow, and with lower limits where queues stay.
    """
    inputs, overflow, staying = list(queues), set[int](), Targets()
    by_pk: dict[int | None, Member] = {member.pk: member for member in members}
    limited = _lower_limits(members, Counter(queue.owner for queue in queues if not _may_stay(queue, by_pk)))
    while True:
        targets = strategy(inputs, limited)
        unplaced = [queue for queue in inputs if targets[queue.pk] is None]
        if full := {queue.pk for queue in unplaced if queue.pin}:
            overflow |= full
            inputs = [replace(queue, pin="") if queue.pk in full else queue for queue in inputs]
        elif kept := {queue.pk: queue.owner for queue in unplaced if queue.owner and _may_stay(queue, by_pk)}:
            staying |= kept
            inputs = [queue for queue in inputs if queue.pk not in kept]
            limited = _lower_limits(limited, Counter(kept.values()))
        else:
            return targets | staying, overflow


def _lower_limits(members: Sequence[Member], taken: Counter[int | None]) -> list[Member]:
    """Return the members with their limits lowered by the queues that stay with them."""
    return [
        member if member.limit is None else replace(member, limit=max(0, member.limit - taken[member.pk]))
        for member in members
    ]


def _may_stay(queue: QueueInput, members: Mapping[int | None, Member]) -> bool:
    owner = members.get(queue.owner)
    return owner is not None and queue.labels.items() <= owner.labels.items()
