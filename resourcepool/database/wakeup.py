"""Lets a loop sleep until a moment that others may bring forward."""

import math
import queue

from resourcepool.database.clock import monotonic


class Wakeup:
    """One loop sleeps on it; any thread may wake it earlier.

    A turn of the loop is: ``reset``, look what is due and when the next thing is, ``sleep_until`` then. What
    arrives between the look and the sleep is heard by the sleep.

    A moment that was asked for once stays asked for until it has come, even if its reason has gone meanwhile: one
    idle turn is cheaper than waking the loop for each of a thousand short leases.

    Others ask by one call that is done or not, so that an exception of a signal handler leaves nothing half done: an
    ``Event`` that is interrupted keeps its lock, and hangs whoever touches it next.

    Attributes:
        asked_for: the moment at which the loop looks again; who asks for a later one need not. The loop's own.
    """

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[float] = queue.SimpleQueue()
        self.asked_for = math.inf

    def reset(self) -> None:
        """Begin a turn."""
        while self._hear(0):
            pass
        if self.asked_for <= monotonic():
            self.asked_for = math.inf

    def sleep_until(self, moment: float) -> None:
        """Sleep until ``moment`` (see ``clock.monotonic``; infinity: until rung), or until somebody asks."""
        self.asked_for = min(self.asked_for, moment)
        self._hear(max(0.0, self.asked_for - monotonic()))

    def bring_forward(self, moment: float) -> None:
        """Make sure that the loop looks again at ``moment`` at the latest."""
        if moment < self.asked_for:
            self._asked.put(moment)

    def ring(self) -> None:
        """Make the loop look again now."""
        self._asked.put(-math.inf)

    def _hear(self, seconds: float) -> bool:
        """Take in what was asked for next, waiting so many seconds for it; tells whether anything was."""
        try:
            moment = self._asked.get(timeout=None if math.isinf(seconds) else seconds)
        except queue.Empty:
            return False
        self.asked_for = min(self.asked_for, moment)
        return True
