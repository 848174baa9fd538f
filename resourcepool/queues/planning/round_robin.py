"""The document's way: over the queues in order, the members in turn (R1.2)."""

from collections import Counter
from collections.abc import Sequence
from math import gcd

from resourcepool.queues.planning.assignment import Member, QueueInput, Targets
from resourcepool.queues.planning.eligibility import kinds_of


def round_robin(queues: Sequence[QueueInput], members: Sequence[Member]) -> Targets:
    """Give the queues, in their order, to the members in turn, whoever has them now.

    A round of the turn is as many passes over the members as the greatest weight (all divided by what they have in
    common), and a member comes in as many of them as its weight: with A of weight 2 and B of weight 1 the turn is
    A B A, A B A, ... Who may not have a queue, or is full, is passed over, and the turn goes on after the member that
    got it. A queue that nobody can have gets nobody, and the turn stays.

    It does not promise few moves: of 64 queues on 8 servers 53 or 54 move when one leaves, where `sticky` moves 8.
    Nor does it keep room for a queue with fewer candidates that comes later.
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
    """Whose turn it is. Steps are counted: step s is that of member s % members in pass s // members of the round."""

    def __init__(self, weights: Sequence[int]) -> None:
        common = gcd(*weights) or 1
        self.weights = [weight // common for weight in weights]
        self.round = max(self.weights, default=0) * len(weights)
        self.step = 0

    def take(self, able: Sequence[int]) -> int:
        """Return whichever of these is next, and go on to the step after it."""
        step = min(map(self._next_step, able))
        self.step = (step + 1) % self.round
        return step % len(self.weights)

    def _next_step(self, index: int) -> int:
        members = len(self.weights)
        step = self.step + (index - self.step) % members
        return step if step // members < self.weights[index] else self.round + index
