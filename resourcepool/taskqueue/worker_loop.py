"""The loop of a process that runs handlers: it stores the results of ended attempts and begins new ones."""

import contextlib
import logging
import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import ClassVar, Generic, Never, TypeVar

from resourcepool import options
from resourcepool.database.clock import monotonic
from resourcepool.database.timeouts import statement_timeout
from resourcepool.database.wakeup import Wakeup
from resourcepool.events import sentence_for
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.options import Seconds
from resourcepool.signals import exit_hooks
from resourcepool.taskqueue.handler_threads import AttemptT, HandlerThreads
from resourcepool.taskqueue.running_task import Result

logger = logging.getLogger(__name__)

GRACE = 30.0  # seconds for running handlers after ``stop``
PAUSE_AFTER_FAILURE = 0.5  # seconds
EXIT_HOOK_TIMEOUT = 1.0  # seconds
EXIT_CODE = 75  # EX_TEMPFAIL: start it again
GIVEN_BACK = Result("", is_given_back=True)

EndT = TypeVar("EndT")


class ProcessMustExit(Exception):
    """A handler must end but cannot be stopped, so the process has to exit."""


class Worker(Generic[AttemptT, EndT]):
    """The attempts of one process. Only the thread that calls ``run_once`` sends statements.

    Attributes:
        in_hand: attempts that are running or whose result is not stored yet, by primary key.
    """

    overdue_text: ClassVar[str]  # the message about an attempt {0} that exceeded its max_runtime

    def __init__(self, wakeup: Wakeup) -> None:
        """Start nothing yet; ``wakeup`` wakes the loop when a handler has ended."""
        self._wakeup = wakeup
        self._ended: SimpleQueue[tuple[AttemptT, Result]] = SimpleQueue()
        self._workers: HandlerThreads[AttemptT] = HandlerThreads(self._note_end)
        self._unwritten: dict[AttemptT, EndT] = {}
        self.in_hand: dict[int, AttemptT] = {}

    def start(self) -> None:
        """Prepare the first ``run_once``. Raises DatabaseUnavailable."""
        raise NotImplementedError

    def run_once(self, *, may_begin: bool) -> float:
        """Store the results of ended attempts and begin due ones; return the time of the next call.

        Args:
            may_begin: False while the process is stopping.

        Raises:
            LeaseLost: this process has lost the lead.
            ProcessMustExit: a handler has run for too long.
            DatabaseUnavailable: nothing was done; call it again.
        """
        raise NotImplementedError

    def renew_if_due(self) -> None:
        """Renew a lease that could not be renewed during a ``run_once`` that failed."""

    def stop(self) -> None:
        for work in self.in_hand.values():
            work.stop()

    def cut_off(self, why: str) -> Never:
        """Give the running attempts back and raise ProcessMustExit: threads cannot be stopped."""
        self._collect()
        for work in self._running:
            self._unwritten[work] = self._end_of(work, GIVEN_BACK, is_cut_off=True)
        with contextlib.suppress(
            LeaseLost, DatabaseUnavailable
        ):  # the next leader takes them over, or they expire
            self._write_ends()
        raise ProcessMustExit(why)

    def check_threads(self) -> None:
        """Raise ProcessMustExit if a handler thread has ended: its attempt, and later ones, would never run."""
        if self._workers.has_dead_thread:
            self.cut_off("a thread that runs handlers has ended")

    def close(self) -> None:
        self._workers.close()

    def _end_of(self, work: AttemptT, result: Result, *, is_cut_off: bool = False) -> EndT:
        raise NotImplementedError

    def _write_ends(self) -> None:
        raise NotImplementedError

    def _note_end(self, work: AttemptT, result: Result) -> None:
        self._ended.put((work, result))
        self._wakeup.wake()

    @property
    def _running(self) -> list[AttemptT]:
        return [work for work in self.in_hand.values() if work not in self._unwritten]

    def _collect(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                work, result = self._ended.get_nowait()
                self._unwritten.setdefault(work, self._end_of(work, result))

    def _stop_overdue(self, now: float) -> None:
        overdue = [work for work in self._running if work.overdue_at <= now]
        for work in overdue:
            late = Result("", sentence_for("ran_too_long", seconds=work.max_runtime))
            self._unwritten[work] = self._end_of(work, late, is_cut_off=True)
        if overdue:
            self.cut_off("; ".join(self.overdue_text.format(work) for work in overdue))


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

    def _serve(self, name: str, worker: Worker[AttemptT, EndT]) -> None:
        """Run the worker until ``stop``; exit the process if a handler would continue without this loop."""
        try:
            self._loop_until_stopped(name, worker)
        except ProcessMustExit as error:
            for hook in exit_hooks:  # the history is written
                hook(EXIT_HOOK_TIMEOUT)
            self._exit_process(str(error))
        except BaseException as error:
            if worker.in_hand:  # also after a second Ctrl-C: no other process may lead while handlers run
                self._exit_process(f"{str(error) or type(error).__name__}, while {_handlers(worker)} ran")
            raise
        finally:
            worker.close()

    def _loop_until_stopped(self, name: str, worker: Worker[AttemptT, EndT]) -> None:
        with statement_timeout():
            worker.start()
        ends_at: float | None = None
        while ends_at is None or worker.in_hand:
            self._wakeup.reset()
            now = monotonic()
            if self._is_stopping and ends_at is None:
                ends_at = now + self._grace
                worker.stop()
            try:
                with statement_timeout():
                    worker.check_threads()
                    next_at = worker.run_once(may_begin=ends_at is None)
            except DatabaseUnavailable as error:
                logger.warning("%s: %s", name, error)
                worker.renew_if_due()
                next_at = monotonic() + PAUSE_AFTER_FAILURE  # not now + ..: run_once may have waited for a lock
            if ends_at is not None and worker.in_hand:
                if now > ends_at:
                    with statement_timeout():
                        worker.cut_off(f"{_handlers(worker)} did not end within {self._grace:g} s")
                next_at = min(next_at, ends_at)
            if ends_at is None or worker.in_hand:
                self._wakeup.sleep_until(next_at)


def _handlers(worker: Worker[AttemptT, EndT]) -> str:
    count = len(worker.in_hand)
    return "1 handler" if count == 1 else f"{count} handlers"
