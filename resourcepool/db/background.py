"""Background threads and their own database connections, opened on use and closed when idle."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import Self

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.timeouts import statement_timeout

PAUSE_TIMEOUT = 1.0  # seconds that a fork, or the exit, waits for the statements of background threads

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
