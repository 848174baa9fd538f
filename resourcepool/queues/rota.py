"""In which order a server's loops go through its queues: all its threads share it, so that no queue is left out."""

from collections.abc import Generator

from resourcepool.queues.held import Hand, HeldQueue
from resourcepool.queues.membership import Membership


class Rota:
    """The order of the queues' keys, round and round: a pass begins after the queue that was yielded last.

    So a loop that is left in the middle, by ``break`` or an error, gets to the others with its next passes.
    """

    def __init__(self) -> None:
        self._latest = 0  # key of the queue that was yielded last

    def go_through(self, membership: Membership) -> Generator[HeldQueue, None, bool]:
        """Yield each queue that may be begun, once, in hand until the next is asked for; return whether one was."""
        has_begun = False
        for queue in sorted(membership.held, key=lambda queue: (queue.pk <= self._latest, queue.pk)):
            if membership.is_resting:
                break
            hand = Hand(is_loop=True)
            try:
                if membership.begin(queue, hand):
                    self._latest, has_begun = queue.pk, True
                    yield queue
            finally:
                membership.finish(queue, hand)
        return has_begun
