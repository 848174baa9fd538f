"""The turns of a node: write down how handlers ended, claim due timers, and run them or hand them over."""

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

RULES_MAX_AGE = 2.5  # seconds after which a change of a topic counts
MIN_PAUSE, MAX_PAUSE = 0.02, 1.0  # seconds between two looks
AHEAD, MOST_AHEAD = 0.05, 64  # seconds of work for each thread that are claimed at once, and timers
SLOW_AFTER = (
    1.0  # seconds for which a claimed timer waits for a thread, and after which a handler counts as slow
)
LEFT_FOR = 60.0  # seconds for which a timer is passed over whose schedule this node cannot read
PAUSE = 1.0  # seconds after the broker was found away

Send = Callable[[int, int, float | None], object]
"""Sends the primary key and the fence of a timer, and the seconds for which its handler may run (None: any time)."""

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
        # Asked for under ``_holder``, without an answer yet, with the rules of that moment.
        self._asked_for: dict[int, tuple[DueTimer, Rule]] = {}
        self._holder = default_holder()
        self._unreadable: dict[int, float] = {}  # timers that this node passes over, and until when
        self._took = AHEAD  # seconds that a handler takes, as far as known

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
        due, look_at = self._look(room) if room > 0 else ([], now + MAX_PAUSE)
        if self._unwritten or due or self._asked_for:
            # A recurring or failed timer may be due again by then.
            goes_on = any(end.claimed.schedule or end.error is not None for end in self._unwritten.values())
            begun = self._finish_and_claim(due)
            if goes_on:
                look_at = monotonic()
            elif due and not begun:  # others claimed or locked them
                look_at = monotonic() + MIN_PAUSE
        return min([look_at, *(timer.overdue_at for timer in self._running)])

    def close(self) -> None:
        """End the threads; the node is gone."""
        super().close()
        with contextlib.suppress(DatabaseUnavailable), statement_timeout():
            self._node.leave()

    def _end_of(self, work: RunningTimer, result: Result, *, is_cut_off: bool = False) -> AttemptEnd:
        if work.has_begun:
            self._took += (work.took - self._took) / 8
        ended = work.ended(result, is_cut_off=is_cut_off)
        if ended.error is not None:
            logger.warning("%s %s in attempt %d: %s", work, ended.how, work.attempt, ended.error)
        return ended

    def _note_end(self, work: RunningTimer, result: Result) -> None:
        if result is not GIVEN_BACK:  # by this node, which has written that down itself
            super()._note_end(work, result)

    def _write_ends(self) -> None:
        self._finish_and_claim([])

    def _room(self) -> int:
        """Return how many more may be claimed: what the threads can do in the next ``AHEAD`` seconds."""
        ahead = min(MOST_AHEAD, max(1, int(AHEAD / max(self._took, 1e-6))))
        slow_since, running = monotonic() - SLOW_AFTER, self._running
        slow = sum(timer.begun_at < slow_since for timer in running)
        return (self._threads - slow) * ahead - (len(running) - slow)

    def _give_back_waiting(self, now: float) -> None:
        """Give back the timers that still wait for a thread: all may be slow, and other nodes have some."""
        for timer in self._running:
            if not timer.has_begun and now - timer.claimed.sent_at > SLOW_AFTER and timer.take_turn():
                self._unwritten[timer] = self._end_of(timer, GIVEN_BACK)

    def _read_rules(self, now: float) -> None:
        if now - self._rules_at >= RULES_MAX_AGE:
            read = partial(claims.read_rules, self._using, handlers.topics())
            found = retrying(connections[self._using], read)
            node = self._node
            self._rules = {
                name: rule for name, rule in found.items() if may_handle(rule, node.labels, node.version)
            }
            self._rules_at = now
        self._node.renew(self._rules)

    def _look(self, room: int) -> tuple[list[DueTimer], float]:
        """Return the timers that may begin now, punctual ones first, and when to look again."""
        topics = [name for name, rule in self._rules.items() if not rule.is_paused]
        late_room = min(room, self._rate.left(monotonic()))
        look = partial(claims.read_due, self._using, topics, room + 1, late_room, self._left_alone())
        seen, seen_at = retrying(connections[self._using], look), monotonic()
        found = [one for one in seen if self._can_read(one, seen_at)]
        due = [one for one in found if one.due_in <= 0]
        late = [one for one in due if one.is_late]
        chosen = ([one for one in due if not one.is_late] + late)[:room]
        following = min((one.due_in / 1_000_000 for one in found if one.due_in > 0), default=MAX_PAUSE)
        if len(found) < len(seen):  # those behind them were not seen
            following = min(following, MIN_PAUSE)
        if late_room < room and len(late) >= late_room:  # there may be more, for which there is no room yet
            following = min(following, 5 * MIN_PAUSE)
        return chosen, seen_at + min(following, MAX_PAUSE)

    def _left_alone(self) -> list[int]:
        now = monotonic()
        self._unreadable = {pk: until for pk, until in self._unreadable.items() if until > now}
        return list(self._unreadable)

    def _can_read(self, one: DueTimer, now: float) -> bool:
        """Return whether this node can tell when the timer is due next; if not, pass it over for a while."""
        why = occurrences.unreadable(one.schedule)
        if why:
            claims.log_unreadable(one.topic, one.pk, why)
            self._unreadable[one.pk] = now + LEFT_FOR
        return not why

    def _finish_and_claim(self, due: list[DueTimer]) -> int:
        """Write ends down, claim, and run the claimed timers; return how many."""
        for timer in self._unwritten:
            timer.lease.stop_renewing()  # no renewal finds another fence
        ends = list(self._unwritten.values())
        claimed, locked = self._ask_for(due, partial(claims.finish_and_claim, self._using, ends))
        for timer in [one for one in self._unwritten if one.claimed.pk not in locked]:
            timer.lease.mark_released()
            del self._unwritten[timer]
            if self.in_hand.get(timer.claimed.pk) is timer:
                del self.in_hand[timer.claimed.pk]
        begun = [RunningTimer(self._using, one, handlers.find(one.rule.name)) for one in claimed]
        self.in_hand.update({one.claimed.pk: one for one in begun})
        self._workers.run(begun, self._threads)
        return len(begun)

    def _ask_for(self, due: list[DueTimer], send: Callable[..., claims.Answer]) -> claims.Answer:
        """Have these timers claimed, and those that were asked for without an answer, by the rules of that moment."""
        self._asked_for.update({one.pk: (one, self._rules[one.topic]) for one in due})
        asked_for = self._asked_for.values()
        timers, rules = [one for one, _ in asked_for], {rule.name: rule for _, rule in asked_for}
        claimed, locked = retrying(connections[self._using], partial(send, timers, rules, self._holder))
        late = {one.pk for one in timers if one.is_late}
        self._rate.take(sum(one.pk in late for one in claimed))
        self._holder, self._asked_for = default_holder(), {}
        return claimed, locked


class TimerDispatcher(TimerWorker):
    """A node that runs no handlers itself: it hands each due timer to another process, such as a Celery worker.

    A timer is first set aside in the database, under a new fence, and then sent. If the message is lost or not taken,
    the timer is handed over again; a message that arrives late no longer matches the fence.
    """

    def __init__(
        self, using: str, node: Node, threads: int, late_rate: float, wakeup: Wakeup, by: HandOver
    ) -> None:
        super().__init__(using, node, threads, late_rate, wakeup)
        self._by, self._paused_until = by, 0.0

    def _room(self) -> int:
        return MOST_AHEAD if monotonic() >= self._paused_until else 0

    def _finish_and_claim(self, due: list[DueTimer]) -> int:
        """Hand due timers over; while the broker is away, nothing in the database changes."""
        with ExitStack() as stack:
            try:
                send = stack.enter_context(self._by())
            except Exception as error:  # noqa: BLE001 (any of any broker)
                logger.warning("timers: cannot be handed over: %s: %s", type(error).__name__, error)
                self._paused_until = monotonic() + PAUSE
                return len(due)  # no reason to look again at once
            handed, _ = self._ask_for(due, partial(claims.hand_over, self._using))
            for number, one in enumerate(handed):
                handler = handlers.find(one.rule.name)
                try:
                    send(one.pk, one.fence, None if handler is None else handler.max_runtime)
                except Exception as error:  # noqa: BLE001
                    left, why = len(handed) - number, f"{type(error).__name__}: {error}"
                    logger.warning("timers: %d wait to be handed over again: %s", left, why)
                    self._paused_until = monotonic() + PAUSE
                    break
        if len(due) >= MOST_AHEAD:
            self._wakeup.wake()  # there may be more
        return len(handed)
