"""Limits how long one attempt of a statement waits for its answer.

For database servers that accept a statement and never answer: frozen (stopped, or out of disk), or behind a network
that dropped the connection silently. Drivers wait for them without a limit: PostgreSQL's has none, and few projects set
MySQL's. So a thread watches the clock and shuts the socket down; the statement fails as if the connection was lost.
"""

import contextlib
import logging
import math
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.clock import monotonic
from resourcepool.database.wakeup import Wakeup
from resourcepool.threads.daemon import Daemon
from resourcepool.threads.per_process import per_process

logger = logging.getLogger(__name__)

STATEMENT_TIMEOUT = 6.0  # seconds per attempt; more than the recommended wait for a locked row
TIMEOUT_GRACE = 3.0  # seconds beyond the caller's timeout
RECHECK = 1.0  # seconds until a session that the same attempt opened meanwhile is shut down, too


class ThreadState:
    """The current block and attempt of one thread.

    The references are weak, because a signal handler may keep a thread from removing them.

    Attributes:
        block: the block that limits its attempts.
        attempt: the current attempt.
    """

    __slots__ = ("__weakref__", "attempt", "block")

    def __init__(self) -> None:
        self.block: weakref.ref[statement_timeout] | None = None
        self.attempt: weakref.ref[StatementAttempt] | None = None

    @property
    def current_block(self) -> "statement_timeout | None":
        """The block that limits its attempts, unless a signal handler has interrupted its end."""
        return self.block() if self.block is not None else None


class _Local(threading.local):
    """The calling thread's state."""

    def __init__(self) -> None:
        self.state = ThreadState()
        watchdog.add(self.state)


class statement_timeout:  # noqa: N801 (used like a function)
    """Limits how long each attempt of a statement by this thread waits for its answer in the block."""

    __slots__ = ("__weakref__", "_outer", "_state", "ends_by", "seconds")
    seconds: float
    ends_by: Callable[[], float] | None

    def __init__(
        self, seconds: float = STATEMENT_TIMEOUT, *, ends_by: Callable[[], float] | None = None
    ) -> None:
        """Prepare the block.

        Args:
            seconds: the limit per attempt; a lower limit around the block still applies.
            ends_by: returns the time (``clock.monotonic``) by which all attempts end. It may become earlier meanwhile:
                call ``watchdog.check_by`` then. None: as around the block.
        """
        self._state = state = _local.state
        outer = state.current_block
        self.seconds = seconds if outer is None else min(outer.seconds, seconds)
        self.ends_by = outer.ends_by if ends_by is None and outer is not None else ends_by

    def __enter__(self) -> None:
        self._outer, self._state.block = self._state.block, weakref.ref(self)

    def __exit__(self, *raised: object) -> None:
        self._state.block = self._outer


class StatementAttempt:
    """One attempt of a statement; outside ``statement_timeout`` it has no limit.

    Attributes:
        limit: seconds it may take; None: no limit.
        ends_by: see ``statement_timeout``.
        until: the time, by this process's clock, at which the limit is reached.
        shutdown_at: when to shut the socket down, for the first time or again.
        is_timed_out: whether it took longer.
    """

    __slots__ = (
        "__weakref__",
        "_began",
        "_connecting",
        "_outer",
        "_state",
        "connection",
        "ends_by",
        "is_timed_out",
        "limit",
        "shutdown_at",
        "until",
    )

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection, self.is_timed_out, self.until = connection, False, math.inf
        self._state = _local.state
        block = self._state.current_block
        self.limit = None if block is None or connection.vendor == "sqlite" else block.seconds
        self.ends_by = None if block is None else block.ends_by

    def __enter__(self) -> None:
        if self.limit is None:
            return
        self._connecting: AbstractContextManager[None] | None = None
        if not dialect.is_socket_known(self.connection):
            if dialect.may_connect(self.connection):
                self._connecting = dialect.limit_connect_time(self.connection, self.limit)
                self._connecting.__enter__()
            dialect.remember_socket(self.connection)
        self._began = monotonic()
        self.until = self.shutdown_at = self._began + self.limit
        self._outer, self._state.attempt = self._state.attempt, weakref.ref(self)
        if self.ends_by is not None:  # last: from now on the watchdog checks it, too
            self.until = self.shutdown_at = min(self.until, self.ends_by())
        # Checked inline, because calls would cost several times as much.
        if self.until < watchdog.wakeup.next_at or not watchdog.thread.is_running:
            watchdog.check_by(self.until)

    def __exit__(self, *raised: object) -> None:
        if self.limit is None:
            return
        self._state.attempt = self._outer  # of code that a signal handler interrupted
        if self.is_timed_out:  # set before the watchdog checks whether the attempt is still under way
            watchdog.finish()
        if self._connecting is not None:
            self._connecting.__exit__(None, None, None)
        if self.is_timed_out and not self.connection.in_atomic_block:
            dialect.close_quietly(self.connection)  # also if the answer came at the last moment

    @property
    def seconds(self) -> float:
        """How long it may take."""
        return round(self.until - self._began, 2)

    @property
    def is_over(self) -> bool:
        """Whether its limit is reached."""
        return self.limit is not None and monotonic() >= self.until


class Watchdog:
    """The thread that shuts sockets down, and the threads it watches; starts on first use, and again after a fork."""

    def __init__(self) -> None:
        self._states: dict[int, weakref.ref[ThreadState]] = {}
        self.wakeup = Wakeup()
        self.thread = Daemon("answers", self._run)
        self._shutting_down = threading.Lock()

    def add(self, state: ThreadState) -> None:
        """Watch the thread of ``state`` until it ends."""
        key, states = id(state), self._states
        states[key] = weakref.ref(state, lambda _: states.pop(key, None))

    def check_by(self, moment: float) -> None:
        """Check the limits of all attempts at ``moment`` or earlier."""
        if not self.thread.is_running:
            with contextlib.suppress(RuntimeError):  # no more threads can start: attempts have no limit
                self.thread.ensure_started()  # its first check includes the calling thread
        else:
            self.wakeup.bring_forward(moment)

    def finish(self) -> None:
        """Return once no socket is being shut down."""
        with self._shutting_down:
            pass

    def _run(self) -> None:
        while True:
            self.wakeup.reset()
            try:
                check_at = self._check(monotonic())
            except Exception:
                logger.exception("could not close a stuck connection")
                check_at = monotonic() + RECHECK
            self.wakeup.sleep_until(check_at)

    def _check(self, now: float) -> float:
        """Shut down the sockets of attempts that have reached their limits; return when to check again."""
        check_at = math.inf
        for weak in list(self._states.values()):
            if (
                (state := weak()) is None
                or (current := state.attempt) is None
                or (attempt := current()) is None
            ):
                continue
            if attempt.ends_by is not None and not attempt.is_timed_out:
                attempt.until = attempt.shutdown_at = min(attempt.until, attempt.ends_by())
            if attempt.shutdown_at <= now:
                with self._shutting_down:
                    attempt.is_timed_out = True
                    attempt.shutdown_at = now + RECHECK  # it may open another session
                    if state.attempt is current:
                        dialect.shutdown_socket(attempt.connection)
            check_at = min(check_at, attempt.shutdown_at)
        return check_at


watchdog = per_process(Watchdog)
_local = per_process(_Local)
