"""How a grant ended for its holder."""

import contextlib
import threading
from collections.abc import Iterator

from resourcepool.exceptions import LeaseLost, LeaseReleased


class Ending:
    """How a grant ended for its holder; decided once, whoever notices first.

    Attributes:
        ended: what every further use raises.
        is_ending: somebody is giving it up at this moment.
        is_in_doubt: that failed, and nobody knows whether it took effect, or will.
    """

    def __init__(self) -> None:
        self.ended: LeaseLost | None = None
        self.is_ending = self.is_in_doubt = False
        self._lock = threading.Lock()

    @property
    def is_near(self) -> bool:
        """Whether the grant has ended, or may have."""
        return self.ended is not None or self.is_ending or self.is_in_doubt

    def refuse(self, lease: object) -> None:
        """Raise LeaseLost or LeaseReleased if ``lease`` has ended, or may have."""
        if self.ended is not None:
            raise self.ended
        if self.is_ending:
            raise LeaseReleased(f"{lease} is being given up by another thread")
        if self.is_in_doubt:
            raise LeaseReleased(
                f"{lease} was given up, and the database did not answer: that may have taken effect"
            )

    @contextlib.contextmanager
    def attempt(self, lease: object) -> Iterator[None]:
        """Let the caller give ``lease`` up, and nobody else meanwhile; if it fails, it may be tried again."""
        with self._lock:
            first, self.is_ending = not self.is_ending, True
        if not first:
            raise LeaseReleased(f"{lease} is being given up by another thread")
        try:
            yield
        except BaseException:
            self.is_in_doubt = True  # for good: what was sent may arrive late
            raise
        finally:
            self.is_ending = False

    def end(self, how: LeaseLost) -> bool:
        """Note how it ended; False when that was decided before."""
        with self._lock:
            first = self.ended is None
            if first:
                self.ended = how
        return first
