"""The background threads of this process, never two for the same work, and its other state."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connections

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
