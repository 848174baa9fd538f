"""Lets a loop sleep until a moment that others may bring forward."""

import math
import threading

from resourcepool.leases.clock import monotonic


class Alarm:
    """One loop sleeps on it; any thread may wake it earlier.

    A turn of the loop is: ``reset``, look what is due and when the next thing is, ``sleep_until`` then. What
    arrives between the look and the sleep ends the sleep at once.

    A moment that was asked for once stays asked for until it has come, even if its reason has gone meanwhile: one
    idle turn is cheaper than waking the loop for each of a thousand short leases.

    Attributes:
        asked_for: the moment at which the loop looks again; who asks for a later one need not.
    """

    def __init__(self) -> None:
        self._rings = threading.Event()
        self.asked_for = math.inf

    def reset(self) -> None:
        """Begin a turn."""
        if self.asked_for <= monotonic():
            self.asked_for = math.inf
        self._rings.clear()

    def sleep_until(self, moment: float) -> None:
        """Sleep until ``moment`` (see ``clock.monotonic``; infinity: until rung), or earlier when rung or asked to."""
        self.asked_for = moment = min(self.asked_for, moment)
        if math.isinf(moment):
            self._rings.wait()
        else:
            self._rings.wait(max(0.0, moment - monotonic()))

    def bring_forward(self, moment: float) -> None:
        """Make sure that the loop looks again at ``moment`` at the latest."""
        if moment < self.asked_for:
            self.asked_for = moment
            self._rings.set()

    def ring(self) -> None:
        """Make the loop look again now."""
        self.asked_for = math.inf  # whatever it was to look for, it looks for now
        self._rings.set()
