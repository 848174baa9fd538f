"""Whether somebody who asks now would have to wait, going by those who asked a moment ago."""

from resourcepool.leases.clock import monotonic
from resourcepool.leases.waiting import Waiter


class Crowd:
    """Remembers that somebody here had to wait a moment ago: then the next one goes straight to the line.

    It would not be served at once anyway, and the try costs as much as a look from the line. There it rests for a
    moment before it looks. Served by its first look, it was wrong, and the next one tries as usual.
    """

    LATELY = 0.25  # seconds
    REST = 0.05  # seconds at most, and half of the last wait
    IN_NO_HURRY = 1.0  # seconds: whoever gives up sooner does not rest

    def __init__(self) -> None:
        self._until = float("-inf")
        self._last_wait = 0.0

    def served(self, waiter: Waiter, began: float) -> None:
        """Note how a wait that ``began`` then has ended."""
        now = monotonic()
        self._until = now + self.LATELY if waiter.had_to_wait else float("-inf")
        self._last_wait = now - began

    def is_likely(self) -> bool:
        """Tell whether others are likely to stand in line."""
        return monotonic() < self._until

    def rest(self, timeout: float) -> float:
        """Return for how many seconds somebody who would wait for ``timeout`` need not look."""
        return min(self.REST, self._last_wait / 2) if self.is_likely() and timeout >= self.IN_NO_HURRY else 0.0
