"""Wakes threads that wait, whatever a signal handler does to whoever rings.

``threading.Event`` and ``Condition`` keep an inner lock: a handler that raises in the wrong moment leaves it locked,
and one that comes back to it waits for itself. Both hang the process. What is here is one step of the interpreter.
"""

import contextlib
import threading


class Bell:
    """Wakes the one thread that waits for it, or keeps it from falling asleep; an ``Event`` takes ten times as long."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        """End the wait, or the next one."""
        with contextlib.suppress(RuntimeError):  # it has been rung already
            self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait until it is rung, or for so many seconds; tells whether it was, and if so, silences it.

        Args:
            seconds: -1: without end.
        """
        return self._lock.acquire(timeout=seconds)
