"""The turns of a consumer that leads a stream: begin tasks, and write down how they ended."""

import contextlib
import logging
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import TypeVar

from django.db import connections, transaction
from django.utils import translation

from resourcepool import dialect
from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.database.wakeup import Wakeup
from resourcepool.elections.term import Term
from resourcepool.events import sentence_for
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.taskqueue import attempts, handlers
from resourcepool.taskqueue.abstract import event_reason, tasks_text
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.policy import (
    End,
    Policy,
    TaskSnapshot,
    Verdict,
    after_crash,
    after_failure,
    after_lost_connection,
    choose,
    crashes_left,
)
from resourcepool.taskqueue.running_task import Result, RunningTask
from resourcepool.taskqueue.worker_loop import GIVEN_BACK, Worker
from resourcepool.text import ascii_escaped

logger = logging.getLogger(__name__)

TASKS_PER_LANE = 16  # tasks for each lane
POLICY_MAX_AGE = 2.5  # seconds after which a change of the stream counts
MIN_PAUSE, MAX_PAUSE = 0.02, 2.5  # seconds between two looks
RENEWED_WITHIN = 1.0  # seconds, if the database answers
RESIGN_INTERVAL = 60.0  # seconds, at most once for a type
OF_IDLE = 0.1  # of the time for which there was nothing to do
MAX_WAITING_LANES = 1_000  # lanes that are passed over by name

Answer = TypeVar("Answer")


class StreamWorker(Worker[RunningTask, Result]):
    """One term of a consumer."""

    overdue_text = "{0}: it ran longer than its max_runtime of {0.max_runtime:g} s"

    def __init__(
        self, stream: str, term: Term, wakeup: Wakeup, stepped_down_for: dict[str, float] | None = None
    ) -> None:
        """Prepare; ``stepped_down_for``: types for which this process has resigned, and when; it is added to."""
        super().__init__(wakeup)
        self._stepped_down_for = {} if stepped_down_for is None else stepped_down_for
        self._unknown: set[str] = set()  # types without a handler here
        self._left: set[int] = set()  # tasks in which that was noted
        self._stream, self._term = stream, term
        self._using, self._connection = term.using, connections[term.using]
        self._due: list[TaskSnapshot] = []  # seen in this turn
        self._waits: dict[str, float] = {}
        self._sees_more = False
        self._policy: Policy | None = None
        self._wrong = ""  # what is wrong with the settings that were read last
        self._policy_at = self._active_at = -math.inf

    def start(self) -> None:
        """Take over what the former leader left. Raises LeaseLost, DatabaseUnavailable."""
        self._active_at = monotonic()
        taken = self._guarded(lambda: attempts.take_over(self._using, self._stream, self._term.fence))
        if taken:
            logger.warning("stream %s: the last consumer left %s", self._stream, tasks_text(taken))

    def run_once(self, *, may_begin: bool) -> float:
        self._term.ensure_held()  # while a task runs there may be nothing to be written
        now = monotonic()
        self._read_policy(now)
        policy = self._policy
        if policy is None:
            raise LeaseLost(f"stream {self._stream!r} has been deleted")
        self._collect()
        self._stop_overdue(now)
        free = policy.lanes - len(self._running) if may_begin and not policy.is_paused else 0
        self._sees_more = False
        self._due = self._look(policy, free) if free > 0 and not self._unwritten else []
        if self._unwritten or self._due:
            self._write_and_begin(policy, free)
            self._active_at = now
        elif free > 0 and not self.in_hand and not self._sees_more:
            self._step_down()
        return self._next_look(now)

    def renew_if_due(self) -> None:
        """Renew the term after a turn that failed: the keeper could not while its transaction was open.

        A task's row may have been locked for longer than a term lasts.

        Raises:
            LeaseLost: this process does not lead any more.
        """
        if self._term.trust.due_at <= monotonic():
            with contextlib.suppress(DatabaseUnavailable), statement_timeout(RENEWED_WITHIN):
                self._term.renew()

    def _end_of(self, work: RunningTask, result: Result, *, is_cut_off: bool = False) -> Result:
        return result

    def _write_ends(self) -> None:
        policy = self._policy
        if policy is not None:
            self._sent(policy, 0)

    def _read_policy(self, now: float) -> None:
        if now - self._policy_at < POLICY_MAX_AGE:
            return
        read = partial(attempts.read_policy, self._using, self._stream)
        policy, self._policy_at = retrying(self._connection, read), now
        self._policy = policy if policy is None else self._served(policy)
        self._waits.clear()  # an operator may have retried what blocked them

    def _served(self, policy: Policy) -> Policy:
        """Return it, or the last valid one: running tasks must not be broken off for wrong settings."""
        with translation.override("en"):
            wrong = Stream(**asdict(policy)).wrong_settings()
        is_new, self._wrong = wrong != self._wrong, wrong
        if not wrong:
            return policy
        if self._policy is None:
            raise LeaseLost(f"its settings are wrong: {wrong}")
        if is_new:
            text = "stream %s: its settings are wrong, the former ones still count: %s"
            logger.error(text, self._stream, wrong)
        return replace(self._policy, is_paused=policy.is_paused)

    def _look(self, policy: Policy, free: int) -> list[TaskSnapshot]:
        """Return the tasks that may begin now, and note the lanes that have to wait."""
        by_lane, now = policy.lanes > 1, monotonic()
        most = TASKS_PER_LANE * policy.lanes if by_lane else 1
        only_due = len(self._waits) >= MAX_WAITING_LANES
        without = self._lanes_passed_over(math.inf if only_due else now) if by_lane else set()
        look = partial(attempts.first_tasks, self._using, self._stream, without, most, only_due=only_due)
        heads = retrying(self._connection, look)
        in_hand = {task.pk: task.crashes for task in self._running}
        begin, waits, left = choose(
            heads,
            in_hand,
            by_lane=by_lane,
            free=free,
            max_crashes=policy.max_crashes,
            known=handlers.task_registry.known,
        )
        self._leave(left)
        self._waits.update({lane: now + seconds for lane, seconds in waits.items()})
        self._sees_more = bool(waits) and len(heads) == most > 1 and not only_due
        return begin

    def _leave(self, heads: list[TaskSnapshot]) -> None:
        """Leave tasks alone that this process has no handler for, and show why in the first one of each type."""
        for kind, head in {head.type: head for head in reversed(heads)}.items():
            self._unknown.add(kind)
            if head.pk in self._left:
                continue
            self._left.add(head.pk)
            why = sentence_for("no_handler", name=kind)
            logger.warning("stream %s: task %s is left alone: %s", self._stream, head.key, why)
            retrying(self._connection, partial(attempts.write_outcome, self._using, head, why))

    def _step_down(self) -> None:
        """Resign, now and then, when all that is left is of types that a standby may have handlers for."""
        now, latest = monotonic(), self._stepped_down_for
        new = {kind for kind in self._unknown if latest.get(kind, -math.inf) + RESIGN_INTERVAL <= now}
        if new:
            latest.update(dict.fromkeys(new, now))
            raise LeaseLost(f"resigns: a standby may have handlers for {', '.join(sorted(new))}")

    def _lanes_passed_over(self, now: float) -> set[str]:
        return {task.lane for task in self._running} | {
            lane for lane, until in self._waits.items() if until > now
        }

    def _write_and_begin(self, policy: Policy, free: int) -> None:
        begun = self._sent(policy, free)
        for task in self._unwritten:
            self.in_hand.pop(task.pk, None)
        self._unwritten.clear()
        self.in_hand.update({task.pk: task for task in begun})
        self._workers.run(begun, policy.lanes)

    def _sent(self, policy: Policy, free: int) -> list[RunningTask]:
        try:
            return self._guarded(lambda: self._send(policy, free))
        except Exception as error:
            if not self._unwritten or not dialect.refuses_text(self._connection, error):
                raise
            logger.warning(
                "stream %s: a result or an error cannot be written as it is: %s", self._stream, error
            )
            self._unwritten = {task: _in_ascii(result) for task, result in self._unwritten.items()}
            return self._guarded(lambda: self._send(policy, free))

    def _send(self, policy: Policy, free: int) -> list[RunningTask]:
        self._end(policy)
        # The tasks that were just seen may begin; when the transaction is sent again, look again.
        heads, self._due = self._due, []
        if free <= 0:
            return []  # tasks seen in an earlier turn are not begun now
        return self._begin(policy, heads or self._look(policy, free))

    def _begin(self, policy: Policy, heads: list[TaskSnapshot]) -> list[RunningTask]:
        may_run = []
        for head in heads:
            verdict = after_crash(policy, head.crashes) if head.crashes else None
            if verdict is None:
                may_run.append(head)
            else:
                died = End(verdict, sentence_for("process_crashed", count=head.crashes))
                if attempts.end(self._using, [(head.pk, head.fence)], died):
                    self._tell_given_up(head, died)
        if not may_run:
            return []
        begun = attempts.begin(self._using, may_run, self._term.fence, self._term.holder)
        if policy.lanes > 1:
            begun = attempts.with_params(self._using, begun)
        return [RunningTask(self._stream, head, self._term, handlers.find(head.type)) for head in begun]

    def _end(self, policy: Policy) -> None:
        alike: dict[End, list[RunningTask]] = {}
        for task, result in self._unwritten.items():
            if result.error is None:
                alike.setdefault(_without_failure(policy, task, result), []).append(task)
            else:
                self._end_failed(policy, task, result.error, is_disconnected=result.is_disconnected)
        for end, tasks in alike.items():
            attempts.end(self._using, [(task.pk, task.fence) for task in tasks], end)

    def _end_failed(self, policy: Policy, task: RunningTask, error: str, *, is_disconnected: bool) -> None:
        verdict = after_lost_connection(policy, task.crashes) if is_disconnected else None
        counts = task.failures, task.crashes + 1
        if verdict is None:
            counts = task.failures + 1, crashes_left(policy, task.crashes)
            verdict = after_failure(policy, task.failures + 1)
        end = End(verdict, error, counts)
        if attempts.end(self._using, [(task.pk, task.fence)], end):
            logger.warning("task %s: %s after attempt %d: %s", task, verdict.state, task.attempt, error)
            if verdict.state is not Task.State.READY:
                self._tell_given_up(task, end)

    def _tell_given_up(self, task: TaskSnapshot | RunningTask, end: End) -> None:
        assert end.verdict is not None  # noqa: S101 (for the type checker: a failed task is not deleted)
        what, reason = (
            EventKind(end.verdict.state.value),
            event_reason(f"{self._stream}/{task.key}", end.outcome),
        )
        emit(RowEvent(what, Task, self._using, task.pk, task.fence, self._term.holder, reason))

    def _guarded(self, send: Callable[[], Answer]) -> Answer:
        """Run ``send`` in a transaction that commits only while this process leads; it may be sent again."""

        def once() -> Answer:
            with transaction.atomic(using=self._using), self._term.guard():
                return send()

        return retrying(self._connection, once)

    def _next_look(self, now: float) -> float:
        idle = now - self._active_at
        pace = 0.0 if self._sees_more else min(MAX_PAUSE, max(MIN_PAUSE, idle * OF_IDLE))
        overdue = (task.overdue_at for task in self._running)
        return min([now + pace, *overdue, *(until for until in self._waits.values() if until > now)])


def _in_ascii(result: Result) -> Result:
    if result is GIVEN_BACK:
        return result
    error = None if result.error is None else ascii_escaped(result.error)
    return result._replace(outcome=ascii_escaped(result.outcome), error=error)


def _without_failure(policy: Policy, task: RunningTask, result: Result) -> End:
    if result is GIVEN_BACK:  # cut off: its deaths stay as they are
        return End(Verdict(Task.State.READY), "")
    if result.is_given_back:  # by its handler, which ended without killing its process
        counts = task.failures, crashes_left(policy, task.crashes)
        return End(Verdict(Task.State.READY, result.delay), result.outcome, counts)
    return End(Verdict(Task.State.DONE) if policy.done_kept else None, result.outcome)
