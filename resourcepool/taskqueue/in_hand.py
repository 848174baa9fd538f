"""The attempts that a process has in hand, and the threads in which it runs their handlers."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.threads import Wakeup
from resourcepool.events import sentence_for
from resourcepool.taskqueue.policy import GIVEN_BACK, Result
from resourcepool.taskqueue.running_task import Attempt, failure_result

logger = logging.getLogger(__name__)

AttemptT = TypeVar("AttemptT", bound=Attempt)
Answer = TypeVar("Answer")


class InHand(Generic[AttemptT]):
    """The attempts of one process: running ones, and ended ones whose ends are not stored yet.

    Their handlers run in daemon threads: one that hangs does not delay the end of the process. Only the thread of the
    loop calls this.

    Attributes:
        attempts: all of them, by primary key.
        ends: the results that are not stored yet.
    """

    def __init__(self, wakeup: Wakeup) -> None:
        """Start no thread yet; ``wakeup`` wakes the loop when a handler has ended."""
        self._wakeup, self._pid = wakeup, os.getpid()
        self._waiting: SimpleQueue[AttemptT | None] = SimpleQueue()
        self._ended: SimpleQueue[tuple[AttemptT, Result]] = SimpleQueue()
        self._threads = list[threading.Thread]()
        self.attempts: dict[int, AttemptT] = {}
        self.ends: dict[AttemptT, Result] = {}

    @property
    def running(self) -> list[AttemptT]:
        return [attempt for attempt in self.attempts.values() if attempt not in self.ends]

    @property
    def has_dead_thread(self) -> bool:
        """Whether a thread has ended unexpectedly, perhaps with an attempt that it had just taken."""
        return not all(thread.is_alive() for thread in self._threads)

    def run(self, attempts: list[AttemptT], most: int) -> None:
        """Run these, in ``most`` threads at most."""
        for attempt in attempts:
            self.attempts[attempt.pk] = attempt
            if len(self._threads) < most:
                name = f"resourcepool-task-{len(self._threads) + 1}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
            self._waiting.put(attempt)

    def collect(self) -> None:
        """Note how attempts ended whose handlers have returned."""
        with contextlib.suppress(Empty):
            while True:
                attempt, result = self._ended.get_nowait()
                if attempt not in self.ends:
                    self.end(attempt, result)

    def end(self, attempt: AttemptT, result: Result, *, is_cut_off: bool = False) -> None:
        """Note how an attempt ended; ``is_cut_off``: the process exits without waiting for its handler."""
        self.ends[attempt] = attempt.ended(result, is_cut_off=is_cut_off)

    def forget(self, attempts: Iterable[AttemptT]) -> None:
        """Drop attempts whose ends are stored."""
        for attempt in list(attempts):
            del self.ends[attempt]
            if self.attempts.get(attempt.pk) is attempt:
                del self.attempts[attempt.pk]

    def stop(self) -> None:
        """Tell the handlers that the process is stopping."""
        for attempt in self.attempts.values():
            attempt.stop()

    def close(self) -> None:
        """End the idle threads now, and the others after their handler."""
        for _ in self._threads:
            self._waiting.put(None)
        self._threads.clear()

    def _work(self) -> None:
        try:
            while (attempt := self._waiting.get()) is not None:
                self._note_end(attempt, self._result_of(attempt))
        finally:
            connections.close_all()

    def _note_end(self, attempt: AttemptT, result: Result) -> None:
        if result is not GIVEN_BACK:  # by the loop, which has noted that itself
            self._ended.put((attempt, result))
            self._wakeup.wake()

    def _result_of(self, attempt: AttemptT) -> Result:
        try:
            refresh_sessions()
            result = run_in_context(attempt)
            end_if_forked(self._pid)
            result = close_leaked_connections(result)
            refresh_sessions()  # a session that is not kept must not idle until the next attempt
        except BaseException as error:  # noqa: BLE001 (such as a late asynchronous exception)
            end_if_forked(self._pid)
            close_sessions()
            return failure_result(error)
        return result


def end_if_forked(pid: int) -> None:
    """Exit if this is a forked child of the handler: it must not become a second worker."""
    if os.getpid() != pid:
        os._exit(0)


def run_in_context(attempt: Attempt) -> Result:
    """Run it in a copy of the context: its language, time zone and context variables do not outlast it."""
    return copy_context().run(attempt.run)


def close_leaked_connections(result: Result) -> Result:
    """Close connections that the handler left in a transaction; return the result, a failure if there were any."""
    for alias in close_open_transactions():
        if result.error is None and not result.is_given_back:
            result = Result("", sentence_for("transaction_left", alias=repr(alias)))
    if result.error is not None:  # the connections may be the cause
        close_sessions()
    return result


def store(
    connection: BaseDatabaseWrapper,
    ends: Mapping[AttemptT, Result],
    send: Callable[[Mapping[AttemptT, Result]], Answer],
) -> Answer:
    """Let ``send`` store results; text that the database refuses is stored in ASCII."""
    try:
        return send(ends)
    except Exception as error:
        if not ends or not dialect.refuses_text(connection, error):
            raise
        logger.warning("the database refuses the text of a result or an error: %s", error)
        return send({attempt: result.ascii_escaped() for attempt, result in ends.items()})


def refresh_sessions() -> None:
    """Close the sessions of this thread that Django would close between two requests (``CONN_MAX_AGE``).

    The others are checked, so that a session lost between two handlers does not fail the second one.
    """
    with contextlib.suppress(DatabaseError, InterfaceError):  # the driver may have closed one already
        close_old_connections()
    require_health_check()


def require_health_check() -> None:
    """Check the sessions of this thread before their next statement, also without ``CONN_HEALTH_CHECKS``."""
    connection: Any
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            connection.health_check_enabled, connection.health_check_done = True, False


def close_open_transactions() -> list[str]:
    """Close the sessions of this thread that are in a transaction; return the names of their databases."""
    unfinished = [each for each in connections.all(initialized_only=True) if _has_transaction(each)]
    for connection in unfinished:
        dialect.close_quietly(connection)
        del connections[connection.alias]  # with Django's record of open atomic blocks
    return [connection.alias for connection in unfinished]


def close_sessions() -> None:
    """Close all sessions of this thread."""
    for connection in connections.all(initialized_only=True):
        dialect.close_quietly(connection)


def _has_transaction(connection: Any) -> bool:
    is_default = connection.autocommit == connection.settings_dict["AUTOCOMMIT"]
    if connection.in_atomic_block or (connection.connection is not None and not is_default):
        return True
    # ``require_health_check`` resets health_check_done.
    is_used = connection.connection is not None and connection.health_check_done
    if not is_used or not connection.autocommit or not dialect.supports(connection):
        return False
    # A lost session has lost its transaction, too.
    with contextlib.suppress(DatabaseError, InterfaceError), connection.wrap_database_errors:
        return dialect.of(connection).has_transaction(connection)
    return False
