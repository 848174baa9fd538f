"""Background threads and their own database connections, opened on use and closed when idle."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import Self

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.connection import ConnectionProxy

from resourcepool import dialect
from resourcepool.database.clock import monotonic
from resourcepool.database.timeouts import statement_timeout

QUIET_WITHIN = 1.0  # seconds for which a fork, or the exit, waits for the statements of background threads

logger = logging.getLogger(__name__)

_turns: list[threading.RLock] = []  # each held while a background thread uses a database
_held_back: dict[int, list[threading.RLock]] = {}  # {forking thread: the locks it holds for that}


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
    """Log an exception in the block as ``failed``, and go on: an error of one lease must not affect the others.

    This includes SystemExit: a signal receiver that wants to end the process would only end this thread.
    """
    try:
        yield
    except (Exception, SystemExit):
        logger.exception(failed, *about)


class _StandIn(ConnectionProxy):  # type: ignore[type-arg]
    """Stands in ``connections`` of this thread until its private connection to ``alias`` is used.

    So no driver is loaded, or missed, for a database that this thread does not use.
    """

    def __init__(self, own: "OwnConnections", alias: str) -> None:
        super().__init__(own, alias)  # type: ignore[arg-type]
        self.__dict__["alias"] = alias

    def close(self) -> None:
        """Do nothing: an unused connection needs no closing."""
        if self.alias in self._connections:
            self._connections[self.alias].close()

    def close_if_unusable_or_obsolete(self) -> None:
        """Like ``close``."""
        if self.alias in self._connections:
            self._connections[self.alias].close_if_unusable_or_obsolete()


class OwnConnections:
    """The private connections of the calling thread, each made on first use."""

    def __init__(self, turn: threading.RLock) -> None:
        self._made: dict[str, BaseDatabaseWrapper] = {}
        self.turn = turn

    def __getitem__(self, alias: str) -> BaseDatabaseWrapper:
        """Return the connection to ``alias``; raises Django's own error when there can be none."""
        if alias not in self._made:
            self._made[alias] = connections[alias] = dialect.private_connection(alias)
        return self._made[alias]

    def __contains__(self, alias: str) -> bool:
        """Whether it was used."""
        return alias in self._made

    @property
    def are_open(self) -> bool:
        """Whether any of them has a session on a server."""
        return any(connection.connection is not None for connection in self._made.values())

    @contextlib.contextmanager
    def in_place(self) -> Iterator[Self]:
        """Make ``connections`` return these in the calling thread, and at the end the previous ones."""
        before = {connection.alias: connection for connection in connections.all(initialized_only=True)}
        for alias in (aliases := list(connections)):
            connections[alias] = _StandIn(self, alias)  # type: ignore[assignment]
        try:
            yield self
        finally:
            for alias in aliases:
                del connections[alias]
            for alias, connection in before.items():
                connections[alias] = connection

    def close(self) -> None:
        """End the sessions; the next query begins a new one."""
        for connection in self._made.values():
            dialect.close_quietly(connection)

    def discard(self) -> None:
        """End the sessions, for good."""
        for connection in self._made.values():
            dialect.discard(connection)


@contextlib.contextmanager
def own_connections() -> Iterator[OwnConnections]:
    """Give the calling thread connections with short timeouts, and close them at the end; use them in their turn."""
    with own_turn() as turn:
        own = OwnConnections(turn)
        try:
            with statement_timeout(), own.in_place():
                yield own
        finally:
            own.discard()


@contextlib.contextmanager
def own_turn() -> Iterator[threading.RLock]:
    """Yield a lock that a fork waits for: hold it only while you use a database.

    A child inherits the locks inside the drivers' libraries as they are, and would wait for ever for a lock of a thread
    that it does not have.
    """
    turn = threading.RLock()
    _turns.append(turn)
    try:
        yield turn
    finally:
        if turn in _turns:  # not so in a child that was forked meanwhile
            _turns.remove(turn)


@contextlib.contextmanager
def background_paused() -> Iterator[None]:
    """Let the background threads finish their statements, for a second at most, and begin no more meanwhile."""
    _before_fork()
    try:
        yield
    finally:
        _after_fork_in_parent()


def _before_fork() -> None:
    deadline = monotonic() + QUIET_WITHIN
    held = _held_back[threading.get_ident()] = []
    for turn in tuple(_turns):
        if turn.acquire(timeout=max(0.0, deadline - monotonic())):
            held.append(turn)  # noqa: PERF401 (known as held even if a signal handler raises in the middle)


def _after_fork_in_parent() -> None:
    for turn in _held_back.pop(threading.get_ident(), []):
        turn.release()


def _after_fork_in_child() -> None:
    _turns.clear()
    _held_back.clear()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
