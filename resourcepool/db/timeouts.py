"""Limits how long the attempts of a statement take, and on PostgreSQL how long one waits for its answer.

A database server may accept a statement and never answer. For MariaDB and MySQL the connection option ``read_timeout``
ends the wait. PostgreSQL's driver has no such option: ``tcp_user_timeout`` and keepalives only notice that the server's
host is gone, not that the server is frozen (stopped, or waiting for a disk). So a thread watches the clock and shuts
the socket down; the statement fails as if the connection was lost. In the background thread it does so on all database
servers, because a renewal cannot wait for the ``read_timeout`` of another statement.
"""

import contextlib
import logging
import math
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.threads import Daemon, Wakeup, per_process

logger = logging.getLogger(__name__)

STATEMENT_TIMEOUT = 6.0  # seconds per attempt; more than the recommended wait for a locked row
TIMEOUT_GRACE = 3.0  # seconds beyond the caller's timeout
RECHECK = 1.0  # seconds until a session that the same attempt opened meanwhile is shut down, too
WATCHED = "postgresql"  # Django's name of the database whose driver has no limit of its own


_Limits = tuple[float, Callable[[], float] | None]  # seconds of each attempt, and when all must have ended
_limits: ContextVar[_Limits] = ContextVar("resourcepool_limits", default=(math.inf, None))


class statement_timeout:  # noqa: N801 (used like a function; a generator would cost more for each statement)
    """Limit the attempts of statements that this thread sends in the ``with`` block.

    Args:
        seconds: how long each may wait for its answer, on PostgreSQL; a lower limit around the block still applies.
        ends_by: returns the time (``clock.monotonic``) by which all attempts end. It may become earlier meanwhile: call
            ``watchdog.check_by`` then. None: as around the block.
    """

    __slots__ = ("_ends_by", "_seconds", "_token")

    def __init__(
        self, seconds: float = STATEMENT_TIMEOUT, *, ends_by: Callable[[], float] | None = None
    ) -> None:
        self._seconds, self._ends_by = seconds, ends_by

    def __enter__(self) -> None:
        seconds, ends_by = _limits.get()
        self._token = _limits.set((min(seconds, self._seconds), self._ends_by or ends_by))

    def __exit__(self, *raised: object) -> None:
        _limits.reset(self._token)


class StatementAttempt:
    """One attempt of a statement, which begins now; outside ``statement_timeout`` it has no limit.

    Attributes:
        ends_by: see ``statement_timeout``.
        until: the time at which its limit is reached; infinity: it has none.
        shutdown_at: when to shut the socket down, for the first time or again.
        is_timed_out: whether it took longer.
    """

    until, shutdown_at = math.inf, math.inf
    is_timed_out = _is_watched = False
    _began = 0.0

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection, self._session = connection, connection.connection
        limit, self.ends_by = _limits.get()
        is_limited = connection.vendor == WATCHED and limit < math.inf
        if is_limited or (self.ends_by is not None and connection.vendor != "sqlite"):
            self._began, self._is_watched = monotonic(), True
            self.until = self.shutdown_at = self._began + limit
            watchdog.watch(self)

    def close(self) -> None:
        """End it, whether it succeeded or not."""
        if self._session is not self.connection.connection:
            dialect.remember_own_session(self.connection)
        if self._is_watched:
            watchdog.forget(self)
        if self.is_timed_out and not self.connection.in_atomic_block:
            dialect.close_quietly(self.connection)  # also if the answer came at the last moment

    @property
    def seconds(self) -> float:
        """How long it may take."""
        return round(self.until - self._began, 2)

    @property
    def is_over(self) -> bool:
        """Whether its limit is reached."""
        return monotonic() >= self.until


class Watchdog:
    """The thread that shuts sockets down, and the attempts it watches; starts on first use, and again after a fork."""

    def __init__(self) -> None:
        # Weak references, because a signal handler may keep a thread from removing its attempt.
        self._attempts: dict[int, weakref.ref[StatementAttempt]] = {}
        self._wakeup = Wakeup()
        self._thread = Daemon("answers", self._run)
        self._shutting_down = threading.Lock()

    def watch(self, attempt: StatementAttempt) -> None:
        """Watch ``attempt`` until ``forget``."""
        key, attempts = id(attempt), self._attempts
        attempts[key] = weakref.ref(attempt, lambda _: attempts.pop(key, None))
        if attempt.ends_by is not None:  # last: from now on a check that was brought forward includes it
            attempt.until = attempt.shutdown_at = min(attempt.until, attempt.ends_by())
        self.check_by(attempt.until)

    def check_by(self, moment: float) -> None:
        """Check the limits of all attempts at ``moment`` or earlier."""
        if not self._thread.is_running:
            with contextlib.suppress(RuntimeError):  # no more threads can start: attempts have no limit
                self._thread.ensure_started()  # its first check includes all attempts
        elif moment < self._wakeup.next_at:
            self._wakeup.bring_forward(moment)

    def forget(self, attempt: StatementAttempt) -> None:
        """Watch it no longer; return once its socket is not being shut down."""
        self._attempts.pop(id(attempt), None)
        if attempt.is_timed_out:
            with self._shutting_down:
                pass

    def _run(self) -> None:
        while True:
            self._wakeup.reset()
            try:
                check_at = self._check(monotonic())
            except Exception:
                logger.exception("could not close a stuck connection")
                check_at = monotonic() + RECHECK
            self._wakeup.sleep_until(check_at)

    def _check(self, now: float) -> float:
        """Shut down the sockets of attempts that have reached their limits; return when to check again."""
        check_at = math.inf
        for key, weak in list(self._attempts.items()):
            if (attempt := weak()) is None:
                continue
            if attempt.ends_by is not None and not attempt.is_timed_out:
                attempt.until = attempt.shutdown_at = min(attempt.until, attempt.ends_by())
            if attempt.shutdown_at <= now:
                with self._shutting_down:
                    attempt.is_timed_out = True  # first: ``forget`` waits for us from now on
                    attempt.shutdown_at = now + RECHECK
                    if key in self._attempts:
                        dialect.shutdown_socket(attempt.connection)
            check_at = min(check_at, attempt.shutdown_at)
        return check_at


watchdog = per_process(Watchdog)
