"""Wakes a waiting thread, also from code that a signal handler interrupts.

``threading.Event`` and ``Condition`` have an inner lock. A handler that raises at the wrong moment leaves it locked,
and one that uses it again waits for itself: both hang the process. Each method here is one step of the interpreter.
"""

import contextlib
import threading


class SignalSafeEvent:
    """Ends one thread's wait, or its next one; an ``Event`` takes ten times as long."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self) -> None:
        """End the wait, or the next one."""
        with contextlib.suppress(RuntimeError):  # rung already
            self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait until it is rung, or for so many seconds; return whether it was rung. The next wait needs another ring.

        Args:
            seconds: -1: as long as it takes.
        """
        return self._lock.acquire(timeout=seconds)
