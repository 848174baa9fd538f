"""The outcome of a request that waits in line."""

from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

from resourcepool.bell import Bell

CANCELLED = CancelledError()


class Outcome:
    """Decided once, by the first of these: it is served, it fails, or it gives up.

    Used instead of a ``Future``, whose lock a signal handler can leave locked (``resourcepool.bell``); then the thread
    that serves all waiters of this process would hang.
    """

    __slots__ = ("_bell", "_decided", "_tell")

    def __init__(self) -> None:
        self._bell = Bell()
        self._decided: dict[str, tuple[list[Any], BaseException | None]] = {}
        self._tell: Callable[[], object] | None = None

    @property
    def is_decided(self) -> bool:
        """Whether it has been decided."""
        return bool(self._decided)

    @property
    def is_given_up(self) -> bool:
        """Whether the waiter has given up."""
        return self._came_of_it[1] is CANCELLED

    @property
    def leases(self) -> list[Any]:
        """The granted leases; none, if it was not served."""
        return self._came_of_it[0]

    def serve(self, leases: list[Any]) -> bool:
        """Grant these leases; False: it was already decided, and nobody will take them."""
        return self._decide(leases, None)

    def fail(self, error: Exception) -> bool:
        """Make ``result`` raise this; False: it was already decided."""
        return self._decide([], error)

    def give_up(self) -> bool:
        """Give up; False: it was already served, or has failed."""
        self._decide([], CANCELLED)
        return self.is_given_up

    def result(self) -> list[Any]:
        """Return the leases; raises the error it failed with, or CancelledError. It must be decided."""
        leases, error = self._came_of_it
        if error is not None:
            raise error
        return leases

    def wait(self, seconds: float) -> None:
        """Wait until it is decided, at most this many seconds; for one thread."""
        if not self.is_decided:
            self._bell.wait(seconds)

    def when_decided(self, tell: Callable[[], object]) -> None:
        """Call ``tell`` once it is decided, perhaps twice, in the thread that decides."""
        self._tell = tell
        if self.is_decided:
            tell()

    @property
    def _came_of_it(self) -> tuple[list[Any], BaseException | None]:
        return self._decided.get("", ([], None))

    def _decide(self, leases: list[Any], error: BaseException | None) -> bool:
        mine = leases, error
        is_first = self._decided.setdefault("", mine) is mine
        self._bell.ring()
        if self._tell is not None:
            self._tell()
        return is_first
