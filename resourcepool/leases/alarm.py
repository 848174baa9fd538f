"""Lets a loop sleep until a moment that others may bring forward."""

import math

from resourcepool.bell import Bell
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
        self._bell = Bell()
        self.asked_for = math.inf

    def reset(self) -> None:
        """Begin a turn."""
        if self.asked_for <= monotonic():
            self.asked_for = math.inf
        self._bell.wait(0.0)

    def sleep_until(self, moment: float) -> None:
        """Sleep until ``moment`` (see ``clock.monotonic``; infinity: until rung), or earlier when rung or asked to."""
        self.asked_for = moment = min(self.asked_for, moment)
        self._bell.wait(-1 if math.isinf(moment) else max(0.0, moment - monotonic()))

    def bring_forward(self, moment: float) -> None:
        """Make sure that the loop looks again at ``moment`` at the latest."""
        if moment < self.asked_for:
            try:
                self.asked_for = moment
                self._bell.ring()
            except BaseException:  # else nobody would ring for a later moment, either
                self._bell.ring()
                raise

    def ring(self) -> None:
        """Make the loop look again now."""
        self.asked_for = math.inf  # whatever it was to look for, it looks for now
        self._bell.ring()
