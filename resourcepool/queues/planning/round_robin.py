"""The document's strategy: the queues in order, the members in turn (R1.2)."""

from collections import Counter
from collections.abc import Sequence
from math import gcd

from resourcepool.queues.planning.assignment import Member, QueueInput, Targets, kinds_of


def round_robin(queues: Sequence[QueueInput], members: Sequence[Member]) -> Targets:
    """Give the queues, in their order, to the members in turn, regardless of their present owners.

    A round has as many passes over the members as the greatest weight (after dividing all weights by their common
    divisor), and a member takes part in as many of them as its weight: with A of weight 2 and B of weight 1 the turn is
    A B A, A B A, ... A member that may not have a queue, or is full, is skipped, and the turn goes on after the member
    that got it. A queue that no member can have stays without a server, and the turn does not advance.

    It does not promise few moves: of 64 queues on 8 servers 53 or 54 move when one leaves, where `sticky` moves 8.
    Nor does it keep room for a later queue with fewer candidates.
    """
    turn = _Turn([member.weight for member in members])
    given: Counter[int] = Counter()
    targets: Targets = {}
    for queue, kind in zip(queues, kinds_of(queues, members), strict=True):
        able = [index for index in kind if _has_room(members[index], given[index])]
        chosen = turn.take(able) if able else None
        targets[queue.pk] = None if chosen is None else members[chosen].pk
        if chosen is not None:
            given[chosen] += 1
    return targets


def _has_room(member: Member, given: int) -> bool:
    return member.limit is None or given < member.limit


class _Turn:
    """The current turn. Steps are counted: step s is that of member s % members in pass s // members of the round."""

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
