"""The order in which a server's loops go through its queues: all threads share it, so that no queue is left out."""

import math
from collections.abc import Generator

from resourcepool.database.clock import monotonic
from resourcepool.queues.serving.held import Hand, HeldQueue
from resourcepool.queues.serving.membership import Membership


class Rota:
    """The order of the queues' keys, round and round: a pass begins after the queue that was yielded last.

    So a loop that ends early, by ``break`` or an error, gets to the other queues with its next passes.
    """

    def __init__(self) -> None:
        self._latest = 0  # key of the queue that was yielded last

    def go_through(self, membership: Membership) -> Generator[HeldQueue, None, float]:
        """Yield each queue that may be begun, once, in hand until the next is asked for.

        Returns:
            In how many seconds to try again: 0 when any was yielded; infinity: only when there is news.
        """
        has_begun, again_at = False, math.inf
        for queue in sorted(membership.held, key=lambda queue: (queue.pk <= self._latest, queue.pk)):
            if membership.is_resting:
                break
            if queue.skipped_until > monotonic():
                again_at = min(again_at, queue.skipped_until)
                continue
            hand = Hand(is_loop=True)
            try:
                if membership.begin(queue, hand):
                    self._latest, has_begun = queue.pk, True
                    yield queue
            finally:
                membership.finish(queue, hand)
        return 0.0 if has_begun else max(0.0, again_at - monotonic())
