"""Lets a loop sleep until a given time, which other threads may bring forward."""

import math
import queue

from resourcepool.database.clock import monotonic


class Wakeup:
    """One loop sleeps on it; any thread may wake it earlier.

    A turn of the loop is: ``reset``, do the work that is due and compute the next time, then ``sleep_until``. A request
    that arrives before the sleep ends it at once.

    A requested time stays in effect even if its reason disappears: one idle turn is cheaper than waking the loop for
    each of a thousand short leases.

    Each request is one atomic call, so a signal handler's exception cannot leave it half done: an interrupted ``Event``
    would keep its lock and block the next thread.

    Attributes:
        next_at: when the loop runs again; later requests can be skipped. Only the loop writes it.
    """

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[float] = queue.SimpleQueue()
        self.next_at = math.inf

    def reset(self) -> None:
        """Begin a turn."""
        while self._receive(0):
            pass
        if self.next_at <= monotonic():
            self.next_at = math.inf

    def sleep_until(self, moment: float) -> None:
        """Sleep until ``moment`` (see ``clock.monotonic``; infinity: until woken), or until a request."""
        self.next_at = min(self.next_at, moment)
        self._receive(max(0.0, self.next_at - monotonic()))

    def bring_forward(self, moment: float) -> None:
        """Make the loop run again at ``moment`` or earlier."""
        if moment < self.next_at:
            self._requests.put(moment)

    def wake(self) -> None:
        """Make the loop run again now."""
        self._requests.put(-math.inf)

    def _receive(self, seconds: float) -> bool:
        """Receive the next request, waiting up to ``seconds``; returns whether there was one."""
        try:
            moment = self._requests.get(timeout=None if math.isinf(seconds) else seconds)
        except queue.Empty:
            return False
        self.next_at = min(self.next_at, moment)
        return True
