"""How a grant ended for its holder."""

import threading
from collections.abc import Callable
from typing import TypeVar

from resourcepool.exceptions import LeaseLost, LeaseReleased

Result = TypeVar("Result")


class Ending:
    """How a grant ended for its holder; decided once, by the first thread that notices.

    Attributes:
        lost: the error that every further use raises, if the grant was lost.
        given: what the holder did with it ("released"), if it was not lost.
        is_in_doubt: an attempt to give it up failed, and it is unknown whether it took effect, or will.
    """

    __slots__ = ("_attempt", "_lock", "given", "is_in_doubt", "lost")

    def __init__(self) -> None:
        self.lost: LeaseLost | None = None
        self.given = ""
        self.is_in_doubt = False
        self._attempt: object = None  # of the thread that is giving it up
        self._lock = threading.RLock()  # a signal handler may come in between

    @property
    def has_ended(self) -> bool:
        """Whether the ending is decided."""
        return self.lost is not None or bool(self.given)

    @property
    def is_ending(self) -> bool:
        """Whether a thread is giving it up at this moment."""
        return self._attempt is not None

    @property
    def is_near(self) -> bool:
        """Whether the grant has ended, or may have."""
        return self.has_ended or self.is_ending or self.is_in_doubt

    def refuse(self, lease: object) -> None:
        """Raise LeaseLost or LeaseReleased if ``lease`` has ended, or may have."""
        if self.lost is not None:
            raise self.lost
        if self.given:
            raise LeaseReleased(f"{lease} was {self.given} before")
        if self.is_ending:
            raise LeaseReleased(f"{lease} is being given up by another thread")
        if self.is_in_doubt:
            raise LeaseReleased(
                f"{lease} was given up, and the database did not answer: that may have taken effect"
            )

    def attempt(self, lease: object, give_up: Callable[[], Result]) -> Result:
        """Give ``lease`` up, in one thread at a time; after a failure it may be tried again."""
        mine = object()
        try:  # from here on an interrupted attempt is over, wherever it was interrupted
            with self._lock:
                if self._attempt is None:
                    self._attempt = mine
            if self._attempt is not mine:
                raise LeaseReleased(f"{lease} is being given up by another thread")
            try:
                return give_up()
            except BaseException:
                self.is_in_doubt = True  # for good: what was sent may arrive late
                raise
        finally:
            if self._attempt is mine:
                self._attempt = None

    def end(self, given: str = "", lost: LeaseLost | None = None) -> bool:
        """Note how it ended; False when that was already decided."""
        with self._lock:
            first = not self.has_ended
            if first:
                self.given, self.lost = given, lost
        return first
