"""The outcome of a wait: set once, by any thread, even from code that a signal handler interrupts."""

from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

from resourcepool.db.threads.wakeup import SignalSafeEvent

CANCELLED = CancelledError()


class Outcome:
    """Set once, by the first of ``serve``, ``fail`` and ``cancel``.

    Replaces ``Future``, whose lock a signal handler can leave locked (``SignalSafeEvent``).
    """

    __slots__ = ("_callback", "_decided", "_event")

    def __init__(self) -> None:
        self._event = SignalSafeEvent()
        self._decided: dict[str, tuple[list[Any], BaseException | None]] = {}
        self._callback: Callable[[], object] | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has been set."""
        return bool(self._decided)

    @property
    def is_cancelled(self) -> bool:
        """Whether ``cancel`` set it."""
        return self._result[1] is CANCELLED

    @property
    def leases(self) -> list[Any]:
        """The granted leases, if it was served."""
        return self._result[0]

    def serve(self, leases: list[Any]) -> bool:
        """Deliver these leases; False: it was already set, and the caller will not take them."""
        return self._decide(leases, None)

    def fail(self, error: Exception) -> bool:
        """Make ``result`` raise this error; False: it was already set."""
        return self._decide([], error)

    def cancel(self) -> bool:
        """Give up; False: it was already served or has failed."""
        self._decide([], CANCELLED)
        return self.is_cancelled

    def result(self) -> list[Any]:
        """Return the leases; raises the error or CancelledError. The outcome must be set."""
        leases, error = self._result
        if error is not None:
            raise error
        return leases

    def wait(self, seconds: float) -> None:
        """Wait up to ``seconds`` until it is set or ``wake`` is called; for a single thread."""
        if not self.is_done:
            self._event.wait(max(0.0, seconds))

    def wake(self) -> None:
        """End ``wait``."""
        self._event.wake()

    def add_done_callback(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` once the outcome is set, perhaps twice, in the thread that sets it."""
        self._callback = callback
        if self.is_done:
            callback()

    @property
    def _result(self) -> tuple[list[Any], BaseException | None]:
        return self._decided.get("", ([], None))

    def _decide(self, leases: list[Any], error: BaseException | None) -> bool:
        result = leases, error
        is_first = self._decided.setdefault("", result) is result
        self._event.wake()
        if self._callback is not None:
            self._callback()
        return is_first
