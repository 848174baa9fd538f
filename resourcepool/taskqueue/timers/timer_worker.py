"""The work of a node: it stores results, claims due timers, and runs their handlers or hands the timers over."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial

from resourcepool.clock import monotonic
from resourcepool.db.threads.wakeup import Wakeup
from resourcepool.taskqueue.in_hand import InHand
from resourcepool.taskqueue.running_task import GIVEN_BACK, Result
from resourcepool.taskqueue.timers import claims, handlers
from resourcepool.taskqueue.timers.claims import AttemptEnd, DueTimer
from resourcepool.taskqueue.timers.due_timers import MIN_PAUSE, DueTimers
from resourcepool.taskqueue.timers.nodes import Node
from resourcepool.taskqueue.timers.running_timer import RunningTimer
from resourcepool.taskqueue.worker_loop import Worker

logger = logging.getLogger(__name__)

AHEAD = 0.05  # seconds of work that are claimed at once for each thread
MAX_AHEAD = 64  # timers
SLOW_AFTER = 1.0  # seconds; a handler counts as slow then, and a claimed timer waits no longer for a thread
BROKER_PAUSE = 1.0  # seconds without hand-overs after an error of the broker

Send = Callable[[int, int, float | None], object]
"""Sends the primary key and the fence of a timer, and the seconds that its handler may run (None: no limit)."""

HandOver = Callable[[], AbstractContextManager[Send]]
"""Returns a context that raises at its start while nothing can be sent."""


class TimerWorker(Worker[RunningTimer, AttemptEnd]):
    """The worker of a node that runs handlers."""

    def __init__(self, using: str, node: Node, threads: int, late_rate: float, wakeup: Wakeup) -> None:
        self.in_hand = InHand(wakeup, self._end_of)
        self._using, self._threads = using, threads
        self._timers = DueTimers(using, node, late_rate)
        self._average_runtime = AHEAD  # seconds

    def exchange(self, *, may_begin: bool) -> float:
        now, in_hand = monotonic(), self.in_hand
        self._give_back_waiting(now)
        if may_begin:
            self._timers.read_rules(now)
        due, next_at = self._timers.choose(self._room() if may_begin else 0)
        if in_hand.ends or due or self._timers.has_unanswered:
            # A recurring or failed timer may be due again at once.
            may_recur = any(
                end.claimed.schedule or end.result.error is not None for end in in_hand.ends.values()
            )
            begun = self._finish_and_claim(due)
            if may_recur:
                next_at = monotonic()
            elif due and not begun:  # others claimed or locked them
                next_at = monotonic() + MIN_PAUSE
        return next_at

    def _end_of(self, timer: RunningTimer, result: Result, is_cut_off: bool) -> AttemptEnd:
        if timer.has_begun:
            self._average_runtime += (timer.took - self._average_runtime) / 8
        ended = timer.ended(result, is_cut_off=is_cut_off)
        if result.error is not None:
            logger.warning("%s %s in attempt %d: %s", timer, ended.how, timer.attempt, result.error)
        return ended

    def _room(self) -> int:
        """Return how many more timers to claim: as many as the threads can handle in ``AHEAD`` seconds."""
        ahead = min(MAX_AHEAD, max(1, int(AHEAD / max(self._average_runtime, 1e-6))))
        slow_since, running = monotonic() - SLOW_AFTER, self.in_hand.running
        slow = sum(timer.begun_at < slow_since for timer in running)
        return (self._threads - slow) * ahead - (len(running) - slow)

    def _give_back_waiting(self, now: float) -> None:
        """Release timers that have waited too long for a thread: other nodes may have free threads."""
        for timer in self.in_hand.running:
            if not timer.has_begun and now - timer.claimed.sent_at > SLOW_AFTER and timer.take_turn():
                self.in_hand.end(timer, GIVEN_BACK)

    def _finish_and_claim(self, due: list[DueTimer]) -> int:
        """Store results, claim timers, and run these; return how many."""
        ends = self.in_hand.ends
        for timer in ends:
            timer.lease._stop_renewing()  # a renewal would find another fence
        send = partial(claims.finish_and_claim, self._using, list(ends.values()))
        claimed, locked = self._timers.claim(due, send)
        stored = [timer for timer in ends if timer.pk not in locked]
        for timer in stored:
            timer.lease._mark_released()
        self.in_hand.forget(stored)
        begun = [RunningTimer(self._using, each, handlers.find(each.rule.name)) for each in claimed]
        self.in_hand.run(begun, self._threads)
        return len(begun)


class TimerDispatcher(Worker[RunningTimer, AttemptEnd]):
    """A node that runs no handlers: it hands each due timer over to another process, such as a Celery worker.

    A timer is first reserved in the database, under a new fence, and then sent. If the message is lost or no process
    claims the timer, it is handed over again. A late message no longer matches the fence.
    """

    def __init__(self, using: str, node: Node, late_rate: float, wakeup: Wakeup, by: HandOver) -> None:
        self.in_hand = InHand(wakeup, RunningTimer.ended)  # always empty
        self._using, self._by, self._wakeup = using, by, wakeup
        self._timers, self._paused_until = DueTimers(using, node, late_rate), 0.0

    def exchange(self, *, may_begin: bool) -> float:
        now = monotonic()
        if may_begin:
            self._timers.read_rules(now)
        due, next_at = self._timers.choose(MAX_AHEAD if may_begin and now >= self._paused_until else 0)
        if (due or self._timers.has_unanswered) and not self._hand_over(due) and due:
            return monotonic() + MIN_PAUSE  # others claimed or locked them
        return next_at

    def _hand_over(self, due: list[DueTimer]) -> int:
        """Hand due timers over; while the broker cannot be reached, the database is not changed."""
        with ExitStack() as stack:
            try:
                send = stack.enter_context(self._by())
            except Exception as error:  # noqa: BLE001 (any of any broker)
                logger.warning("timers cannot be handed over: %s: %s", type(error).__name__, error)
                self._paused_until = monotonic() + BROKER_PAUSE
                return len(due)  # do not query again at once
            handed, _ = self._timers.claim(due, partial(claims.hand_over, self._using))
            for number, timer in enumerate(handed):
                handler = handlers.find(timer.rule.name)
                try:
                    send(timer.pk, timer.fence, None if handler is None else handler.max_runtime)
                except Exception as error:  # noqa: BLE001
                    left, why = len(handed) - number, f"{type(error).__name__}: {error}"
                    logger.warning("timers: %d have to be handed over again: %s", left, why)
                    self._paused_until = monotonic() + BROKER_PAUSE
                    break
        if len(due) >= MAX_AHEAD:
            self._wakeup.wake()  # there may be more
        return len(handed)
