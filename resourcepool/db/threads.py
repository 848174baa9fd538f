"""Threads of this process, how they and event loops wait, and what wakes them, even when a signal interrupts."""

import asyncio
import contextlib
import logging
import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from django.db import connections

from resourcepool.clock import monotonic

POLL = 0.5  # seconds: Python may miss a signal that arrives just as the main thread begins to wait

_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


class SignalSafeEvent:
    """Ends one thread's wait, or its next one; ``threading.Event`` takes ten times as long.

    ``Event`` and ``Condition`` have an inner lock. A signal handler that raises at the wrong moment leaves it locked,
    and one that uses it deadlocks with itself. Each method here is one atomic call.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self) -> None:
        """End the wait, or the next one."""
        try:  # ``contextlib.suppress`` would take longer than the rest
            self._lock.release()
        except RuntimeError:  # set already
            pass

    def wait(self, seconds: float) -> bool:
        """Wait for ``wake``, up to ``seconds``; returns whether it came. The next wait needs another ``wake``.

        Args:
            seconds: the limit; -1: none.
        """
        return self._lock.acquire(timeout=seconds)


def interruptible_sleep(seconds: float) -> None:
    """Sleep for ``seconds``; an exception of a signal handler ends it within half a second."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, POLL))


class Wakeup:
    """One loop sleeps on it; any thread may wake it earlier.

    A turn of the loop is: ``reset``, do the work that is due and compute the next time, then ``sleep_until``. A request
    that arrives before the sleep ends it at once.

    A requested time stays in effect even if its reason disappears: one idle turn is cheaper than waking the loop for
    each of a thousand short leases.

    Each request is one atomic call, so a signal handler's exception cannot leave it half done: an interrupted ``Event``
    would keep its lock and block the next thread.

    Attributes:
        next_at: when the loop runs again; later requests can be skipped. Only the loop writes it.
    """

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[float] = queue.SimpleQueue()
        self.next_at = math.inf

    def reset(self) -> None:
        """Begin a turn."""
        while self._receive(0):
            pass
        if self.next_at <= monotonic():
            self.next_at = math.inf

    def sleep_until(self, moment: float) -> None:
        """Sleep until ``moment`` (see ``clock.monotonic``; infinity: until woken), or until a request."""
        self.next_at = min(self.next_at, moment)
        self._receive(max(0.0, self.next_at - monotonic()))

    def bring_forward(self, moment: float) -> None:
        """Make the loop run again at ``moment`` or earlier."""
        if moment < self.next_at:
            self._requests.put(moment)

    def wake(self) -> None:
        """Make the loop run again now."""
        self._requests.put(-math.inf)

    def _receive(self, seconds: float) -> bool:
        """Receive the next request, waiting up to ``seconds``; returns whether there was one."""
        try:
            moment = self._requests.get(timeout=None if math.isinf(seconds) else seconds)
        except queue.Empty:
            return False
        self.next_at = min(self.next_at, moment)
        return True


@contextlib.contextmanager
def periodic_wakeup() -> Iterator[None]:
    """Wake the loop twice a second during this block; tasks in such blocks share one timer.

    Python runs signal handlers in the main thread, between two bytecodes. A signal that arrives just as that thread
    goes to sleep, after its check for signals, does not wake it, and asyncio may sleep for a day.
    """
    if threading.current_thread() is not threading.main_thread():  # no other thread handles signals
        yield
        return
    loop = asyncio.get_running_loop()
    if loop not in _waiting:
        _waiting[loop] = 0
        loop.call_later(POLL, _wake, loop)
    _waiting[loop] += 1
    try:
        yield
    finally:
        if loop in _waiting:  # false once the loop is closed and collected
            _waiting[loop] -= 1


def _wake(loop: asyncio.AbstractEventLoop) -> None:
    if _waiting[loop]:
        loop.call_later(POLL, _wake, loop)
    else:
        del _waiting[loop]


CANCELLED = CancelledError()


class Outcome:
    """Set once, by the first of ``serve``, ``fail`` and ``cancel``.

    Replaces ``Future``, whose lock a signal handler can leave locked (``SignalSafeEvent``).

    Attributes:
        decided: empty until it is set; then the leases and the error.
    """

    __slots__ = ("_callback", "_event", "decided")

    def __init__(self) -> None:
        self._event = SignalSafeEvent()
        self.decided: dict[str, tuple[list[Any], BaseException | None]] = {}
        self._callback: Callable[[], object] | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has been set."""
        return bool(self.decided)

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
        if not self.decided:
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
        return self.decided.get("", ([], None))

    def _decide(self, leases: list[Any], error: BaseException | None) -> bool:
        result = leases, error
        is_first = self.decided.setdefault("", result) is result
        self._event.wake()
        if self._callback is not None:
            self._callback()
        return is_first


State = TypeVar("State")

logger = logging.getLogger(__name__)


def per_process(make: Callable[[], State]) -> State:
    """Return a new object, which a forked child initializes again."""
    state: Any = make()
    os.register_at_fork(after_in_child=state.__init__)
    return state  # type: ignore[no-any-return]


class Daemon:
    """A background thread, started by the first ``ensure_started``.

    A signal handler may raise in the middle of ``Thread.start``, and then it is unknown whether the thread runs. So a
    thread is registered before it is started, and ends at once if another one is registered by then.
    """

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        """Prepare it. Exceptions of ``work`` are logged, and its database connections are closed."""
        self._name, self._work = name, work
        self._lock = threading.RLock()  # reentrant for signal handlers
        self._thread: threading.Thread | None = None
        self.is_running = self._has_ended = False

    def ensure_started(self) -> None:
        """Start it unless it runs; cheap if it does. Raises RuntimeError if no more threads can be started."""
        if self.is_running:
            return
        with self._lock:
            if not self.is_alive:
                thread = threading.Thread(target=self._run, name=f"resourcepool-{self._name}", daemon=True)
                self._thread, self._has_ended = thread, False
                _start(thread)

    @property
    def is_alive(self) -> bool:
        """Whether it runs or is starting."""
        return self._thread is not None and self._thread.is_alive() and not self._has_ended

    @property
    def is_healthy(self) -> bool:
        """Whether it runs or was never needed."""
        return self._thread is None or self.is_alive

    def join(self, seconds: float) -> None:
        """Wait up to ``seconds`` for its end."""
        if (thread := self._thread) is not None and thread is not threading.current_thread() and thread.ident:
            thread.join(seconds)

    def _run(self) -> None:
        with self._lock:
            if self._thread is not threading.current_thread():
                return
            self.is_running = True
        try:
            self._work()
        except Exception:
            logger.exception("resourcepool-%s failed", self._name)
        finally:
            with self._lock:
                self.is_running, self._has_ended = False, True
            connections.close_all()


def _start(thread: threading.Thread) -> None:
    handled = sys.exc_info()[1]
    try:
        thread.start()
    except RuntimeError as error:
        # A signal handler raised its context while ``start`` waited for the thread with its inner lock released.
        if error.__context__ not in (None, handled):
            raise error.__context__ from None
        raise
