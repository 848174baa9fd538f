"""Background threads and their own database connections, opened on use and closed when idle.

Each database has its own threads, so that a hanging one does not delay the leases and the waiters of another.
"""

import contextlib
import logging
import math
import os
import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Self

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.threads import Daemon
from resourcepool.db.timeouts import statement_timeout

PAUSE_TIMEOUT = 1.0  # seconds that a fork, or the exit, waits for the statements of background threads
RENEWALS, WAITERS, CHANNELS, HISTORY = "renewals", "waiters", "channels", "history"
ORDER = (RENEWALS, WAITERS, CHANNELS, HISTORY)  # if several are due, the first one runs
IDLE = 10.0  # seconds without work after which the session is closed
PAUSE_AFTER_FAILURE = 0.2  # seconds

logger = logging.getLogger(__name__)

_turns: list[threading.RLock] = []  # each held while a background thread uses a database
_paused_by: dict[int, list[threading.RLock]] = {}  # {forking thread: the turns it holds meanwhile}


def start(name: str, work: Callable[[], object]) -> threading.Thread:
    """Run ``work`` once in a daemon thread; exceptions are logged, and its connections are closed."""

    def run() -> None:
        try:
            work()
        except Exception:
            logger.exception("resourcepool-%s failed", name)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, name=f"resourcepool-{name}", daemon=True)
    thread.start()
    return thread


@contextlib.contextmanager
def log_errors(failed: str, *about: object) -> Iterator[None]:
    """Log an exception in the block as ``failed`` and continue: an error of one lease must not affect the others.

    Includes SystemExit, which would only end this thread when a signal receiver raises it.
    """
    try:
        yield
    except (Exception, SystemExit):
        logger.exception(failed, *about)


class OwnConnections:
    """The private connections of the calling thread; each opens its session on first use."""

    def __init__(self, turn: threading.RLock) -> None:
        self.turn = turn
        self._made: dict[str, BaseDatabaseWrapper] = {}
        for alias in connections:
            # A missing driver is an error for users of that database, not for leases on others.
            with contextlib.suppress(Exception):
                self._made[alias] = dialect.private_connection(alias)

    @property
    def are_open(self) -> bool:
        """Whether any of them has a session on a database server."""
        return any(connection.connection is not None for connection in self._made.values())

    @contextlib.contextmanager
    def installed(self) -> Iterator[Self]:
        """Make ``connections`` return these in the calling thread, and restore the previous ones at the end."""
        before = {connection.alias: connection for connection in connections.all(initialized_only=True)}
        for alias, connection in self._made.items():
            connections[alias] = connection
        try:
            yield self
        finally:
            for alias in self._made:
                del connections[alias]
            for alias, connection in before.items():
                connections[alias] = connection

    def close(self) -> None:
        """End the sessions; the next query opens a new one."""
        for connection in self._made.values():
            dialect.close_quietly(connection)

    def discard(self) -> None:
        """End the sessions, for good."""
        for connection in self._made.values():
            dialect.discard(connection)


@contextlib.contextmanager
def own_connections() -> Iterator[OwnConnections]:
    """Give the calling thread connections with short timeouts until the end of the block; use them with ``turn``."""
    with own_turn() as turn:
        own = OwnConnections(turn)
        try:
            with statement_timeout(), own.installed():
                yield own
        finally:
            own.discard()


@contextlib.contextmanager
def own_turn() -> Iterator[threading.RLock]:
    """Yield a lock that a fork waits for; hold it only while using a database.

    A forked child inherits the locks inside the drivers' libraries and would wait for ever for one that was held by a
    thread of the parent.
    """
    turn = threading.RLock()
    _turns.append(turn)
    try:
        yield turn
    finally:
        if turn in _turns:  # false in a child that was forked meanwhile
            _turns.remove(turn)


@contextlib.contextmanager
def background_paused() -> Iterator[None]:
    """Let background threads finish their statements, for up to a second, and start no new ones in the block."""
    _before_fork()
    try:
        yield
    finally:
        _after_fork_in_parent()


def _before_fork() -> None:
    deadline = monotonic() + PAUSE_TIMEOUT
    held = _paused_by[threading.get_ident()] = []
    for turn in tuple(_turns):
        if turn.acquire(timeout=max(0.0, deadline - monotonic())):
            held.append(turn)  # noqa: PERF401 (recorded even if a signal handler raises in the loop)


def _after_fork_in_parent() -> None:
    for turn in _paused_by.pop(threading.get_ident(), []):
        turn.release()


def _after_fork_in_child() -> None:
    _turns.clear()
    _paused_by.clear()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)


class Routine:
    """Work that a background thread repeats.

    Attributes:
        owner: the background thread.
        next_at: when it runs again; later requests can be skipped. Only the thread writes it.
        is_failing: whether it failed the last time; the first failure is logged.
    """

    def __init__(
        self, owner: "BackgroundThread", name: str, turn: Callable[[], float], has_work: Callable[[], bool]
    ) -> None:
        self.owner, self.name, self.turn, self.has_work = owner, name, turn, has_work
        self.next_at = math.inf
        self.is_failing = False

    def bring_forward(self, moment: float) -> None:
        """Run it at ``moment`` (see ``clock.monotonic``) or earlier."""
        if moment < self.next_at:
            self.owner.requests.put((self, moment))

    def wake(self) -> None:
        """Run it now, or once more if it runs."""
        self.owner.requests.put((self, -math.inf))


class BackgroundThread:
    """Runs the routines for one database; closes its session while there is nothing to do.

    Attributes:
        daemon: the thread.
        is_lent: whether a routine runs that must end before a renewal is late.
        requests: each one atomic call, so a signal handler's exception cannot leave it half done.
    """

    def __init__(self, using: str, name: str = "background", *, idle: float | None = None) -> None:
        self._using, self._idle = using, IDLE if idle is None else idle
        self.daemon = Daemon(f"{name}-{using}", self._run)
        self.is_lent = False
        self.requests: queue.SimpleQueue[tuple[Routine, float]] = queue.SimpleQueue()
        self._routines: dict[str, Routine] = {}
        self._needed_by: Callable[[float], float] | None = None

    def routine(
        self,
        name: str,
        turn: Callable[[], float],
        has_work: Callable[[], bool],
        *,
        needed_by: Callable[[float], float] | None = None,
    ) -> Routine:
        """Return the routine of this name; add it if there is none.

        Args:
            name: one of ``ORDER``.
            turn: does the work that is due, and returns when to run again (``clock.monotonic``; infinity: when woken).
            has_work: whether there is something to do, now or later.
            needed_by: the statements of other routines that begin at the given time end by the returned time.
        """
        if needed_by is not None:
            self._needed_by = needed_by
        return self._routines.setdefault(name, Routine(self, name, turn, has_work))

    def _run(self) -> None:
        with own_connections() as own:
            close_at = math.inf
            while True:
                self._receive(0)
                if (routine := self._due_routine()) is not None:
                    self._take_turn(routine, own)
                    close_at = monotonic() + self._idle
                elif not own.are_open or any(each.has_work() for each in self._in_order()):
                    self._sleep_until(math.inf)
                elif monotonic() < close_at:
                    self._sleep_until(close_at)
                else:
                    with own.turn:
                        own.close()

    def _in_order(self) -> list[Routine]:
        return [self._routines[name] for name in ORDER if name in self._routines]

    def _due_routine(self) -> Routine | None:
        now = monotonic()
        return next((each for each in self._in_order() if each.next_at <= now), None)

    def _take_turn(self, routine: Routine, own: OwnConnections) -> None:
        routine.next_at, begun = math.inf, monotonic()
        needed_by = self._needed_by if routine.name != RENEWALS else None
        self.is_lent = needed_by is not None  # first: leases that come later must know it
        ends_by = None if needed_by is None else partial(needed_by, begun)
        try:
            with own.turn, statement_timeout(ends_by=ends_by):
                next_at = routine.turn()
            routine.is_failing = False
        except Exception:
            if not routine.is_failing:
                logger.exception("%s on database %r failed; trying again", routine.name, self._using)
            routine.is_failing = True
            # Without work it would fail for ever, for example on a database that is no longer configured.
            next_at = monotonic() + PAUSE_AFTER_FAILURE if routine.has_work() else math.inf
        self.is_lent = False
        routine.next_at = next_at

    def _sleep_until(self, moment: float) -> None:
        next_at = min(moment, *(each.next_at for each in self._in_order()))
        self._receive(max(0.0, next_at - monotonic()))

    def _receive(self, seconds: float) -> None:
        """Receive all requests, waiting up to ``seconds`` for the first one."""
        timeout = None if math.isinf(seconds) else seconds
        while True:
            try:
                routine, moment = self.requests.get(timeout=timeout)
            except queue.Empty:
                return
            routine.next_at = min(routine.next_at, moment)
            timeout = 0


def background_thread(using: str) -> BackgroundThread:
    """Return the background thread of this process for this database; its ``daemon`` may not have been started."""
    return _threads.get(using) or _threads.setdefault(using, BackgroundThread(using))


_threads: dict[str, BackgroundThread] = {}
os.register_at_fork(after_in_child=_threads.clear)  # the parent's
