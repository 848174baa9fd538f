"""How a grant ended for its holder."""

import threading

from resourcepool.exceptions import LeaseLost


class Ending:
    """How a grant ended for its holder; decided once, whoever notices first."""

    def __init__(self) -> None:
        self.ended: LeaseLost | None = None
        self.is_ending = False
        self._lock = threading.Lock()

    def begin_ending(self) -> bool:
        """Tell whether the caller may end it now: nobody else is about to."""
        with self._lock:
            first, self.is_ending = not self.is_ending, True
        return first

    def end(self, how: LeaseLost) -> bool:
        """Note how it ended; False when that was decided before."""
        with self._lock:
            first = self.ended is None
            if first:
                self.ended = how
        return first
