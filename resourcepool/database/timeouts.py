"""Limits how long a try of a statement waits for its answer.

For servers that accept a statement and never answer: frozen (stopped, or out of disk), or behind a network that has
dropped the connection silently. Drivers wait for them without end: PostgreSQL's has no limit, MySQL's has one that few
projects set. So a thread watches the clock and hangs up; the statement fails as if the connection was lost.
"""

import contextlib
import logging
import math
import os
import threading
import weakref
from contextlib import AbstractContextManager

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.clock import monotonic
from resourcepool.database.wakeup import Wakeup
from resourcepool.threads.daemon import Daemon

logger = logging.getLogger(__name__)

STATEMENT_TIMEOUT = 6.0  # seconds for one try; more than the recommended wait for a locked row
TIMEOUT_GRACE = 3.0  # seconds beyond the caller's timeout
AGAIN = 1.0  # seconds until the next session of the same try is hung up


class Watched:
    """The waits of one thread.

    Weak, because a thread that is interrupted on the way into a block or a try, or out of it, may not remove it.

    Attributes:
        limiting: the block that limits its tries.
        trying: the current try.
    """

    __slots__ = ("__weakref__", "limiting", "trying")

    def __init__(self) -> None:
        self.limiting: weakref.ref[statement_timeout] | None = None
        self.trying: weakref.ref[StatementAttempt] | None = None

    @property
    def limit(self) -> float | None:
        """Seconds that each of its tries may take; None: no limit."""
        block = self.limiting() if self.limiting is not None else None
        return None if block is None else block.seconds


class _Mine(threading.local):
    """The calling thread's waits."""

    def __init__(self) -> None:
        self.state = Watched()
        watchdog.add(self.state)


class statement_timeout:  # noqa: N801 (used like a function)
    """Limits how long each try of a statement by this thread waits for its answer in the block."""

    __slots__ = ("__weakref__", "_before", "_mine", "seconds")

    def __init__(self, seconds: float = STATEMENT_TIMEOUT) -> None:
        """Prepare the block.

        Args:
            seconds: that a try may take; a lower limit around the block still applies.
        """
        self._local = mine = _local.state
        before = mine.limit
        self.seconds = seconds if before is None else min(before, seconds)

    def __enter__(self) -> None:
        self._before, self._local.limiting = self._local.limiting, weakref.ref(self)

    def __exit__(self, *raised: object) -> None:
        self._local.limiting = self._before


class StatementAttempt:
    """One try of a statement; without ``statement_timeout`` it has no limit.

    Attributes:
        limit: seconds that it may take; None: no limit.
        until: the time, by this process's clock, at which the limit is reached.
        hang_up_at: when to hang up, for the first time or again.
        is_hung_up: it took longer.
    """

    __slots__ = (
        "__weakref__",
        "_before",
        "_connecting",
        "_mine",
        "connection",
        "hang_up_at",
        "is_hung_up",
        "limit",
        "until",
    )

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection, self.is_hung_up, self.until = connection, False, math.inf
        self._local = _local.state
        self.limit = self._local.limit if connection.vendor != "sqlite" else None

    def __enter__(self) -> None:
        if self.limit is None:
            return
        self._connecting: AbstractContextManager[None] | None = None
        if not dialect.is_socket_known(self.connection):
            if dialect.may_connect(self.connection):
                self._connecting = dialect.limit_connect_time(self.connection, self.limit)
                self._connecting.__enter__()
            dialect.remember_socket(self.connection)
        self.until = self.hang_up_at = monotonic() + self.limit
        self._before, self._local.trying = self._local.trying, weakref.ref(self)
        # Checked here, because that takes a fraction of the calls that would check it again.
        if self.until < watchdog.wakeup.next_at or not watchdog.thread.is_running:
            watchdog.look_at(self.until)

    def __exit__(self, *raised: object) -> None:
        if self.limit is None:
            return
        self._local.trying = self._before  # a signal handler's try ends, and the interrupted one goes on
        if self.is_hung_up:  # noted before the check whether it is still under way
            watchdog.finish()
        if self._connecting is not None:
            self._connecting.__exit__(None, None, None)
        if self.is_hung_up and not self.connection.in_atomic_block:
            dialect.close_quietly(self.connection)  # also if the answer came at the very last moment

    @property
    def is_over(self) -> bool:
        """Whether it has reached its limit."""
        return self.limit is not None and monotonic() >= self.until


class Watchdog:
    """The thread that hangs up, and the threads that it watches; starts on first use, and again after a fork."""

    def __init__(self) -> None:
        self._all: dict[int, weakref.ref[Watched]] = {}
        self.wakeup = Wakeup()
        self.thread = Daemon("answers", self._run)
        self._hanging_up = threading.Lock()

    def add(self, one: Watched) -> None:
        """Watch this thread until it ends."""
        key, every = id(one), self._all
        every[key] = weakref.ref(one, lambda _: every.pop(key, None))

    def look_at(self, moment: float) -> None:
        """Look at that moment, at the latest, which tries have reached their limits."""
        if not self.thread.is_running:
            with contextlib.suppress(RuntimeError):  # no more threads: nothing has a limit
                self.thread.ensure_started()  # its first look finds the thread that asks for this
        else:
            self.wakeup.bring_forward(moment)

    def finish(self) -> None:
        """Return once no connection is being hung up."""
        with self._hanging_up:
            pass

    def _run(self) -> None:
        while True:
            self.wakeup.reset()
            try:
                look_at = self._look(monotonic())
            except Exception:
                logger.exception("nobody could be hung up just now")
                look_at = monotonic() + AGAIN
            self.wakeup.sleep_until(look_at)

    def _look(self, now: float) -> float:
        """Hang up tries that have reached their limits; return when to look again."""
        look_at = math.inf
        for found in list(self._all.values()):
            if (state := found()) is None or (trying := state.trying) is None or (one := trying()) is None:
                continue
            if one.hang_up_at <= now:
                with self._hanging_up:
                    one.is_hung_up, one.hang_up_at = True, now + AGAIN  # it may begin another session
                    if state.trying is trying:
                        dialect.shutdown_socket(one.connection)
            look_at = min(look_at, one.hang_up_at)
        return look_at


def _after_fork() -> None:
    global _local  # noqa: PLW0603
    watchdog.__init__()  # type: ignore[misc]  # the parent's thread, lock and tries are not the child's
    _local = _Mine()


watchdog = Watchdog()
_local = _Mine()
os.register_at_fork(after_in_child=_after_fork)
