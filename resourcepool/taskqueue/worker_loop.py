"""A process that runs handlers: their threads, and the loop that stores results of attempts and begins new ones."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Generic, Never, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.threads import Wakeup
from resourcepool.db.timeouts import statement_timeout
from resourcepool.events import sentence_for
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.options import Seconds
from resourcepool.signals import exit_hooks
from resourcepool.taskqueue.policy import GIVEN_BACK, Result
from resourcepool.taskqueue.running_task import (
    Attempt,
    close_leaked_connections,
    close_sessions,
    failure_result,
    refresh_sessions,
)

AttemptT = TypeVar("AttemptT", bound=Attempt)
Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)

GRACE = 30.0  # seconds for running handlers after ``stop``
PAUSE_AFTER_FAILURE = 0.5  # seconds
EXIT_HOOK_TIMEOUT = 1.0  # seconds
EXIT_CODE = 75  # EX_TEMPFAIL: start it again


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
        self._wakeup = wakeup
        self._waiting: SimpleQueue[AttemptT | None] = SimpleQueue()
        self._ended: SimpleQueue[tuple[AttemptT, Result]] = SimpleQueue()
        self._threads = list[threading.Thread]()
        self.attempts: dict[int, AttemptT] = {}
        self.ends: dict[AttemptT, Result] = {}

    @property
    def running(self) -> list[AttemptT]:
        return [attempt for attempt in self.attempts.values() if attempt not in self.ends]

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
            result = close_leaked_connections(run_in_context(attempt))
            refresh_sessions()  # a session that is not kept must not idle until the next attempt
        except BaseException as error:  # noqa: BLE001 (such as SystemExit, raised by the text of an error)
            close_sessions()
            return failure_result(error)
        return result


class ProcessMustExit(Exception):
    """A handler must end but cannot be stopped, so the process has to exit."""


class Worker(Generic[AttemptT]):
    """Begins attempts, and stores how they ended. Only the thread of its loop calls it."""

    in_hand: InHand[AttemptT]

    def exchange(self, *, may_begin: bool) -> float:
        """Store the ends of attempts and begin due ones; return the time of the next call.

        Args:
            may_begin: False while the process is stopping.

        Raises:
            LeaseLost: this process has lost the lead.
            DatabaseUnavailable: nothing was done; call it again.
        """
        raise NotImplementedError

    def renew_if_due(self) -> None:
        """Renew a lease that could not be renewed during an ``exchange`` that failed."""


class WorkerLoop(Generic[AttemptT]):
    """Lets a worker exchange ended attempts for due ones until the process stops."""

    def __init__(self, name: str, worker: Worker[AttemptT], wakeup: Wakeup, grace: float = GRACE) -> None:
        """Start nothing yet; ``name`` is for logs, ``grace`` as for ``Consumer``."""
        self._name, self._worker, self._wakeup, self._grace = name, worker, wakeup, grace
        self._in_hand = worker.in_hand

    @property
    def handlers(self) -> str:
        """The number of attempts in hand, for messages; "": none."""
        count = len(self._in_hand.attempts)
        return "1 handler" if count == 1 else f"{count} handlers" if count else ""

    def run(self, is_stopping: Callable[[], bool]) -> None:
        """Run until the process is stopping and the handlers have ended. Raises LeaseLost, ProcessMustExit."""
        ends_at: float | None = None
        while ends_at is None or self._in_hand.attempts:
            self._wakeup.reset()
            now = monotonic()
            if is_stopping() and ends_at is None:
                ends_at = now + self._grace
                self._in_hand.stop()
            try:
                with statement_timeout():
                    next_at = self.run_once(may_begin=ends_at is None)
            except DatabaseUnavailable as error:
                logger.warning("%s: %s", self._name, error)
                self._worker.renew_if_due()
                next_at = monotonic() + PAUSE_AFTER_FAILURE  # not now + ..: it may have waited for a lock
            if ends_at is not None and self._in_hand.attempts:
                if now > ends_at:
                    with statement_timeout():
                        self.cut_off(f"{self.handlers} did not end within {self._grace:g} s")
                next_at = min(next_at, ends_at)
            if ends_at is None or self._in_hand.attempts:
                self._wakeup.sleep_until(next_at)

    def run_once(self, *, may_begin: bool) -> float:
        """Let the worker exchange; return the time of the next call. Raises as ``exchange``, and ProcessMustExit."""
        self._in_hand.collect()
        self._stop_overdue(monotonic())
        next_at = self._worker.exchange(may_begin=may_begin)
        return min([next_at, *(attempt.overdue_at for attempt in self._in_hand.running)])

    def cut_off(self, why: str) -> Never:
        """Give the running attempts back and raise ProcessMustExit: threads cannot be stopped."""
        self._in_hand.collect()
        for attempt in self._in_hand.running:
            self._in_hand.end(attempt, GIVEN_BACK, is_cut_off=True)
        # If that fails, the next leader takes them over, or they expire.
        with contextlib.suppress(LeaseLost, DatabaseUnavailable):
            self._worker.exchange(may_begin=False)
        raise ProcessMustExit(why)

    def _stop_overdue(self, now: float) -> None:
        overdue = [attempt for attempt in self._in_hand.running if attempt.overdue_at <= now]
        for attempt in overdue:
            late = Result("", sentence_for("ran_too_long", seconds=attempt.max_runtime))
            self._in_hand.end(attempt, late, is_cut_off=True)
        if overdue:
            self.cut_off("; ".join(attempt.overdue_text.format(attempt) for attempt in overdue))


def exit_process(why: str) -> Never:
    """Exit at once, because a thread cannot be stopped; the leases of the process expire."""
    logger.critical("this process exits now and has to be restarted: %s", why)
    logging.shutdown()
    os._exit(EXIT_CODE)


class Runner:
    """A process that runs handlers until ``stop``; see ``Consumer`` for the arguments."""

    def __init__(self, grace: Seconds, exit_process: Callable[[str], Never]) -> None:
        self._grace = options.seconds("grace", grace)
        self._exit_process, self._wakeup = exit_process, Wakeup()
        # Not an Event: a signal handler that sets it could deadlock with its own thread.
        self._is_stopping = False

    def stop(self) -> None:
        """Begin nothing new; ``run`` returns when the running handlers have ended. Signal handlers may call this."""
        self._is_stopping = True
        self._wakeup.wake()

    def _pause(self, seconds: float) -> None:
        self._wakeup.reset()
        if not self._is_stopping:
            self._wakeup.sleep_until(monotonic() + seconds)

    def _serve(self, name: str, worker: Worker[AttemptT]) -> None:
        """Run the worker until ``stop``; exit the process if a handler would continue without this loop."""
        loop = WorkerLoop(name, worker, self._wakeup, self._grace)
        try:
            loop.run(lambda: self._is_stopping)
        except ProcessMustExit as error:
            for hook in exit_hooks:  # the history is written
                hook(EXIT_HOOK_TIMEOUT)
            self._exit_process(str(error))
        except BaseException as error:
            if loop.handlers:  # also after a second Ctrl-C: no other process may lead while handlers run
                self._exit_process(f"{str(error) or type(error).__name__}, while {loop.handlers} ran")
            raise
        finally:
            worker.in_hand.close()


def run_in_context(attempt: Attempt) -> Result:
    """Run it in a copy of the context: its language, time zone and context variables do not outlast it."""
    return copy_context().run(attempt.run)


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
