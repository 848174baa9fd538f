"""Lets a loop sleep until a time that other threads may bring forward."""

import math
import queue

from resourcepool.database.clock import monotonic


class Wakeup:
    """One loop sleeps on it; any thread may wake it earlier.

    A turn of the loop is: ``reset``, do what is due and find the next time, ``sleep_until`` then. A call that arrives
    between the look and the sleep ends the sleep.

    A requested time stays requested until it has come, even if its reason has gone meanwhile: one idle turn is cheaper
    than waking the loop for each of a thousand short leases.

    Each request is one call that happens or not, so that an exception of a signal handler leaves nothing half done: an
    interrupted ``Event`` keeps its lock, and blocks the next thread that uses it.

    Attributes:
        asked_for: when the loop looks again; later requests can be skipped. Written by the loop alone.
    """

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[float] = queue.SimpleQueue()
        self.next_at = math.inf

    def reset(self) -> None:
        """Begin a turn."""
        while self._hear(0):
            pass
        if self.next_at <= monotonic():
            self.next_at = math.inf

    def sleep_until(self, moment: float) -> None:
        """Sleep until ``moment`` (see ``clock.monotonic``; infinity: until woken), or until a request."""
        self.next_at = min(self.next_at, moment)
        self._hear(max(0.0, self.next_at - monotonic()))

    def bring_forward(self, moment: float) -> None:
        """Make the loop look again at ``moment`` at the latest."""
        if moment < self.next_at:
            self._asked.put(moment)

    def wake(self) -> None:
        """Make the loop look again now."""
        self._asked.put(-math.inf)

    def _hear(self, seconds: float) -> bool:
        """Receive the next request, waiting this many seconds; returns whether there was one."""
        try:
            moment = self._asked.get(timeout=None if math.isinf(seconds) else seconds)
        except queue.Empty:
            return False
        self.next_at = min(self.next_at, moment)
        return True
