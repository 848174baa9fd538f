"""What becomes of a request that stands in line."""

from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

from resourcepool.bell import Bell

CANCELLED = CancelledError()


class Outcome:
    """Decided once, by whoever is first: it is served, it fails, or it gives up.

    In place of a ``Future``, whose lock a signal handler can leave locked (``resourcepool.bell``); then the thread that
    serves all waiters of this process would hang.
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
        """Whether whoever waited has given up."""
        return self._came_of_it[1] is CANCELLED

    @property
    def leases(self) -> list[Any]:
        """What was granted; none, if it came to nothing."""
        return self._came_of_it[0]

    def serve(self, leases: list[Any]) -> bool:
        """Grant this; False: it was decided before, and nobody will take them."""
        return self._decide(leases, None)

    def fail(self, error: Exception) -> bool:
        """Have ``result`` raise this; False: it was decided before."""
        return self._decide([], error)

    def give_up(self) -> bool:
        """Ask for nothing any more; False: it was served, or failed, before."""
        self._decide([], CANCELLED)
        return self.is_given_up

    def result(self) -> list[Any]:
        """Return what was granted; raises what it failed with, or CancelledError. It has been decided."""
        leases, error = self._came_of_it
        if error is not None:
            raise error
        return leases

    def wait(self, seconds: float) -> None:
        """Wait until it is decided, for so many seconds at most; for one thread."""
        if not self.is_decided:
            self._bell.wait(seconds)

    def when_decided(self, tell: Callable[[], object]) -> None:
        """Have ``tell`` called once it is decided, perhaps twice, from whichever thread decides."""
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
