"""A process that runs handlers: turn after turn it writes down what has ended and begins what is due."""

import contextlib
import logging
import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import ClassVar, Generic, Never, TypeVar

from resourcepool import options
from resourcepool.database.answers import answer_timeout
from resourcepool.database.clock import monotonic
from resourcepool.database.wakeup import Wakeup
from resourcepool.events import say
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.signals import last_words
from resourcepool.taskqueue.running import Result
from resourcepool.taskqueue.workers import Work, Workers

logger = logging.getLogger(__name__)

DRAIN_WITHIN = 30.0  # seconds
PAUSE_AFTER_FAILURE = 0.5  # seconds
LAST_WORDS = 1.0  # seconds
EXIT_CODE = 75  # EX_TEMPFAIL: start it again
GIVEN_BACK = Result("", is_given_back=True)

Ended = TypeVar("Ended")


class MustEnd(Exception):
    """A handler must not go on, and cannot be stopped: only the end of the process ends it."""


class Turns(Generic[Work, Ended]):
    """The attempts of one process. Only the thread that calls ``turn`` sends statements.

    Attributes:
        in_hand: attempts that run, or whose end is not written down yet; by primary key.
    """

    overdue_text: ClassVar[str]  # about an attempt, {0}, that ran longer than its max_runtime

    def __init__(self, wakeup: Wakeup) -> None:
        """Prepare; ``wakeup`` is rung when a handler has ended."""
        self._wakeup = wakeup
        self._ended: SimpleQueue[tuple[Work, Result]] = SimpleQueue()
        self._workers: Workers[Work] = Workers(self._note_end)
        self._unwritten: dict[Work, Ended] = {}
        self.in_hand: dict[int, Work] = {}

    def start(self) -> None:
        """Prepare the first turn. Raises DatabaseUnavailable."""
        raise NotImplementedError

    def turn(self, *, may_begin: bool) -> float:
        """Write down what has ended, and begin what is due; return when to look again.

        Args:
            may_begin: False: the process is to stop.

        Raises:
            LeaseLost: this process does not lead any more.
            MustEnd: a handler has run for too long.
            DatabaseUnavailable: nothing was done; call it again.
        """
        raise NotImplementedError

    def renew_if_due(self) -> None:
        """Renew, after a turn that failed, a lease that the keeper could not renew during the turn."""

    def stop(self) -> None:
        for work in self.in_hand.values():
            work.stop()

    def cut_off(self, why: str) -> Never:
        """Give running attempts back, because threads cannot be stopped and the process must end. Raises MustEnd."""
        self._collect()
        for work in self._running:
            self._unwritten[work] = self._end_of(work, GIVEN_BACK, is_cut_off=True)
        with contextlib.suppress(LeaseLost, DatabaseUnavailable):  # the next leader finds them, or they expire
            self._write_ends()
        raise MustEnd(why)

    def look_after_threads(self) -> None:
        """Raise MustEnd if a thread of handlers has ended: nobody would run what it had, or what comes next."""
        if self._workers.has_lost_one:
            self.cut_off("a thread that runs handlers has ended")

    def close(self) -> None:
        self._workers.close()

    def _end_of(self, work: Work, result: Result, *, is_cut_off: bool = False) -> Ended:
        raise NotImplementedError

    def _write_ends(self) -> None:
        raise NotImplementedError

    def _note_end(self, work: Work, result: Result) -> None:
        self._ended.put((work, result))
        self._wakeup.ring()

    @property
    def _running(self) -> list[Work]:
        return [work for work in self.in_hand.values() if work not in self._unwritten]

    def _collect(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                work, result = self._ended.get_nowait()
                self._unwritten.setdefault(work, self._end_of(work, result))

    def _stop_overdue(self, now: float) -> None:
        overdue = [work for work in self._running if work.overdue_at <= now]
        for work in overdue:
            late = Result("", say("ran_too_long", seconds=work.max_runtime))
            self._unwritten[work] = self._end_of(work, late, is_cut_off=True)
        if overdue:
            self.cut_off("; ".join(self.overdue_text.format(work) for work in overdue))


def end_process(why: str) -> Never:
    """End this process at once, because one of its threads cannot be stopped; its leases expire."""
    logger.critical("this process ends now, to be started again: %s", why)
    logging.shutdown()
    os._exit(EXIT_CODE)


class Runner:
    """A process that has handlers run until it is told to stop; see ``Consumer`` for the arguments."""

    def __init__(self, drain_within: object, die: Callable[[str], Never]) -> None:
        self._drain_within = options.seconds("drain_within", drain_within)
        self._die, self._wakeup = die, Wakeup()
        # Not an Event: a signal handler that sets one may find it locked by its own thread.
        self._is_stopping = False

    def stop(self) -> None:
        """Begin nothing more; ``run`` returns when what is in hand has ended. May be called by a signal handler."""
        self._is_stopping = True
        self._wakeup.ring()

    def _pause(self, seconds: float) -> None:
        self._wakeup.reset()
        if not self._is_stopping:
            self._wakeup.sleep_until(monotonic() + seconds)

    def _serve(self, name: str, turns: Turns[Work, Ended]) -> None:
        """Turn until ``stop``; end the process if a handler would go on without this loop."""
        try:
            self._turn_until_stopped(name, turns)
        except MustEnd as error:  # leave a moment for the history to be written
            for say_last in last_words:
                say_last(LAST_WORDS)
            self._die(str(error))
        except BaseException as error:  # also the second Ctrl-C: the lead is not given up while handlers run on
            if turns.in_hand:
                self._die(f"{str(error) or type(error).__name__}, while {_handlers(turns)} ran")
            raise
        finally:
            turns.close()

    def _turn_until_stopped(self, name: str, turns: Turns[Work, Ended]) -> None:
        with answer_timeout():
            turns.start()
        ends_at: float | None = None
        while ends_at is None or turns.in_hand:
            self._wakeup.reset()
            now = monotonic()
            if self._is_stopping and ends_at is None:
                ends_at = now + self._drain_within
                turns.stop()
            try:
                with answer_timeout():
                    turns.look_after_threads()
                    look_at = turns.turn(may_begin=ends_at is None)
            except DatabaseUnavailable as error:
                logger.warning("%s: %s", name, error)
                turns.renew_if_due()
                look_at = monotonic() + PAUSE_AFTER_FAILURE  # from now on: the turn may have waited for a lock
            if ends_at is not None and turns.in_hand:
                if now > ends_at:
                    with answer_timeout():
                        turns.cut_off(f"{_handlers(turns)} did not end within {self._drain_within:g} s")
                look_at = min(look_at, ends_at)
            if ends_at is None or turns.in_hand:
                self._wakeup.sleep_until(look_at)


def _handlers(turns: Turns[Work, Ended]) -> str:
    count = len(turns.in_hand)
    return "1 handler" if count == 1 else f"{count} handlers"
