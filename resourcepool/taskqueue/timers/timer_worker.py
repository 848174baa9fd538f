"""The work of a node: it stores results, claims due timers, and runs their handlers or hands the timers over."""

import contextlib
import logging
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial

from django.db import connections

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.database.wakeup import Wakeup
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases.terms import default_holder
from resourcepool.taskqueue.running_task import Result
from resourcepool.taskqueue.timers import claims, handlers, occurrences
from resourcepool.taskqueue.timers.claims import AttemptEnd, DueTimer
from resourcepool.taskqueue.timers.nodes import Node
from resourcepool.taskqueue.timers.rules import Rule, TokenBucket, may_handle
from resourcepool.taskqueue.timers.running_timer import RunningTimer
from resourcepool.taskqueue.worker_loop import GIVEN_BACK, Worker

logger = logging.getLogger(__name__)

RULES_MAX_AGE = 2.5  # seconds until a change of a topic takes effect
MIN_PAUSE, MAX_PAUSE = 0.02, 1.0  # seconds between two queries
AHEAD = 0.05  # seconds of work that are claimed at once for each thread
MAX_AHEAD = 64  # timers
SLOW_AFTER = 1.0  # seconds; a handler counts as slow then, and a claimed timer waits no longer for a thread
SKIP_UNREADABLE_FOR = 60.0  # seconds
BROKER_PAUSE = 1.0  # seconds without hand-overs after an error of the broker

Send = Callable[[int, int, float | None], object]
"""Sends the primary key and the fence of a timer, and the seconds that its handler may run (None: no limit)."""

HandOver = Callable[[], AbstractContextManager[Send]]
"""Returns a context that raises at its start while nothing can be sent."""


class TimerWorker(Worker[RunningTimer, AttemptEnd]):
    overdue_text = "{0} ran for more than {0.max_runtime:g} s"

    def __init__(self, using: str, node: Node, threads: int, late_rate: float, wakeup: Wakeup) -> None:
        super().__init__(wakeup)
        self._using, self._node, self._threads = using, node, threads
        self._rate = TokenBucket(late_rate)
        self._rules: dict[str, Rule] = {}
        self._rules_at = -math.inf
        # Claims under ``_holder`` whose reply is missing, with the rules at the time of the claim.
        self._unanswered: dict[int, tuple[DueTimer, Rule]] = {}
        self._holder = default_holder()
        self._unreadable: dict[int, float] = {}  # until when to skip these timers
        self._average_runtime = AHEAD  # seconds

    def start(self) -> None:
        self._read_rules(monotonic())

    def run_once(self, *, may_begin: bool) -> float:
        now = monotonic()
        self._collect()
        self._stop_overdue(now)
        self._give_back_waiting(now)
        if may_begin:
            self._read_rules(now)
        room = self._room() if may_begin else 0
        due, next_at = self._choose_timers(room) if room > 0 else ([], now + MAX_PAUSE)
        if self._unwritten or due or self._unanswered:
            # A recurring or failed timer may be due again at once.
            may_recur = any(end.claimed.schedule or end.error is not None for end in self._unwritten.values())
            begun = self._finish_and_claim(due)
            if may_recur:
                next_at = monotonic()
            elif due and not begun:  # others claimed or locked them
                next_at = monotonic() + MIN_PAUSE
        return min([next_at, *(timer.overdue_at for timer in self._running)])

    def close(self) -> None:
        """End the threads and remove the node."""
        super().close()
        with contextlib.suppress(DatabaseUnavailable), statement_timeout():
            self._node.leave()

    def _end_of(self, work: RunningTimer, result: Result, *, is_cut_off: bool = False) -> AttemptEnd:
        if work.has_begun:
            self._average_runtime += (work.took - self._average_runtime) / 8
        ended = work.ended(result, is_cut_off=is_cut_off)
        if ended.error is not None:
            logger.warning("%s %s in attempt %d: %s", work, ended.how, work.attempt, ended.error)
        return ended

    def _note_end(self, work: RunningTimer, result: Result) -> None:
        if result is not GIVEN_BACK:  # by this node, which stores that itself
            super()._note_end(work, result)

    def _write_ends(self) -> None:
        self._finish_and_claim([])

    def _room(self) -> int:
        """Return how many more timers to claim: as many as the threads can handle in ``AHEAD`` seconds."""
        ahead = min(MAX_AHEAD, max(1, int(AHEAD / max(self._average_runtime, 1e-6))))
        slow_since, running = monotonic() - SLOW_AFTER, self._running
        slow = sum(timer.begun_at < slow_since for timer in running)
        return (self._threads - slow) * ahead - (len(running) - slow)

    def _give_back_waiting(self, now: float) -> None:
        """Release timers that have waited too long for a thread: other nodes may have free threads."""
        for timer in self._running:
            if not timer.has_begun and now - timer.claimed.sent_at > SLOW_AFTER and timer.take_turn():
                self._unwritten[timer] = self._end_of(timer, GIVEN_BACK)

    def _read_rules(self, now: float) -> None:
        if now - self._rules_at >= RULES_MAX_AGE:
            read = partial(claims.read_rules, self._using, handlers.topics())
            rules = retrying(connections[self._using], read)
            node = self._node
            self._rules = {
                name: rule for name, rule in rules.items() if may_handle(rule, node.labels, node.version)
            }
            self._rules_at = now
        self._node.renew(self._rules)

    def _choose_timers(self, room: int) -> tuple[list[DueTimer], float]:
        """Return the timers that may begin now, punctual ones first, and the time of the next query."""
        topics = [name for name, rule in self._rules.items() if not rule.is_paused]
        late_room = min(room, self._rate.left(monotonic()))
        read = partial(claims.read_due, self._using, topics, room + 1, late_room, self._skipped())
        timers, read_at = retrying(connections[self._using], read), monotonic()
        readable = [timer for timer in timers if self._can_read(timer, read_at)]
        due = [timer for timer in readable if timer.due_in <= 0]
        late = [timer for timer in due if timer.is_late]
        chosen = ([timer for timer in due if not timer.is_late] + late)[:room]
        pause = min((timer.due_in / 1_000_000 for timer in readable if timer.due_in > 0), default=MAX_PAUSE)
        if len(readable) < len(timers):  # later timers were not read
            pause = min(pause, MIN_PAUSE)
        if late_room < room and len(late) >= late_room:  # there may be more late timers, for later
            pause = min(pause, 5 * MIN_PAUSE)
        return chosen, read_at + min(pause, MAX_PAUSE)

    def _skipped(self) -> list[int]:
        now = monotonic()
        self._unreadable = {pk: until for pk, until in self._unreadable.items() if until > now}
        return list(self._unreadable)

    def _can_read(self, timer: DueTimer, now: float) -> bool:
        """Return whether this node can evaluate the timer's schedule; if not, skip the timer for a while."""
        why = occurrences.unreadable(timer.schedule)
        if why:
            claims.log_unreadable(timer.topic, timer.pk, why)
            self._unreadable[timer.pk] = now + SKIP_UNREADABLE_FOR
        return not why

    def _finish_and_claim(self, due: list[DueTimer]) -> int:
        """Store results, claim timers, and run these; return how many."""
        for timer in self._unwritten:
            timer.lease._stop_renewing()  # a renewal would find another fence
        ends = list(self._unwritten.values())
        claimed, locked = self._claim(due, partial(claims.finish_and_claim, self._using, ends))
        for timer in [timer for timer in self._unwritten if timer.claimed.pk not in locked]:
            timer.lease._mark_released()
            del self._unwritten[timer]
            if self.in_hand.get(timer.claimed.pk) is timer:
                del self.in_hand[timer.claimed.pk]
        begun = [RunningTimer(self._using, each, handlers.find(each.rule.name)) for each in claimed]
        self.in_hand.update({timer.claimed.pk: timer for timer in begun})
        self._workers.run(begun, self._threads)
        return len(begun)

    def _claim(self, due: list[DueTimer], send: Callable[..., claims.Answer]) -> claims.Answer:
        """Claim these timers, and repeat claims whose reply was lost, by the rules of their time."""
        self._unanswered.update({timer.pk: (timer, self._rules[timer.topic]) for timer in due})
        claims_sent = self._unanswered.values()
        timers, rules = [timer for timer, _ in claims_sent], {rule.name: rule for _, rule in claims_sent}
        claimed, locked = retrying(connections[self._using], partial(send, timers, rules, self._holder))
        late = {timer.pk for timer in timers if timer.is_late}
        self._rate.take(sum(timer.pk in late for timer in claimed))
        self._holder, self._unanswered = default_holder(), {}
        return claimed, locked


class TimerDispatcher(TimerWorker):
    """A node that runs no handlers: it hands each due timer over to another process, such as a Celery worker.

    A timer is first reserved in the database, under a new fence, and then sent. If the message is lost or no process
    claims the timer, it is handed over again. A late message no longer matches the fence.
    """

    def __init__(
        self, using: str, node: Node, threads: int, late_rate: float, wakeup: Wakeup, by: HandOver
    ) -> None:
        super().__init__(using, node, threads, late_rate, wakeup)
        self._by, self._paused_until = by, 0.0

    def _room(self) -> int:
        return MAX_AHEAD if monotonic() >= self._paused_until else 0

    def _finish_and_claim(self, due: list[DueTimer]) -> int:
        """Hand due timers over; while the broker cannot be reached, the database is not changed."""
        with ExitStack() as stack:
            try:
                send = stack.enter_context(self._by())
            except Exception as error:  # noqa: BLE001 (any of any broker)
                logger.warning("timers cannot be handed over: %s: %s", type(error).__name__, error)
                self._paused_until = monotonic() + BROKER_PAUSE
                return len(due)  # do not query again at once
            handed, _ = self._claim(due, partial(claims.hand_over, self._using))
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
