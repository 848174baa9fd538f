"""The attempts that a process has in hand, and the threads in which it runs their handlers."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.wakeup import Wakeup
from resourcepool.events import sentence_for
from resourcepool.taskqueue import sessions
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
                result = self._result_of(attempt)
                if result is not GIVEN_BACK:  # by the loop, which has noted that itself
                    self._ended.put((attempt, result))
                    self._wakeup.wake()
        finally:
            connections.close_all()

    def _result_of(self, attempt: AttemptT) -> Result:
        try:
            sessions.refresh()
            result = run_in_context(attempt)
            end_if_forked(self._pid)
            result = close_leaked_connections(result)
            sessions.refresh()  # a session that is not kept must not idle until the next attempt
        except BaseException as error:  # noqa: BLE001 (such as a late asynchronous exception)
            end_if_forked(self._pid)
            sessions.close_all()
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
    for alias in sessions.close_open_transactions():
        if result.error is None and not result.is_given_back:
            result = Result("", sentence_for("transaction_left", alias=repr(alias)))
    if result.error is not None:  # the connections may be the cause
        sessions.close_all()
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
