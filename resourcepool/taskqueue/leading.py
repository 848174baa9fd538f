"""What a consumer does while it leads a stream: it begins tasks, and writes down how they ended."""

import contextlib
import logging
import math
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Never, TypeVar

from django.db import connections, transaction

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.database.wakeup import Wakeup
from resourcepool.elections.term import Term
from resourcepool.events import say
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.taskqueue import attempts, handlers
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.order import Head, choose
from resourcepool.taskqueue.policy import Policy, Verdict, after_death, after_failure
from resourcepool.taskqueue.running import Result, RunningTask
from resourcepool.taskqueue.turning import MustEnd
from resourcepool.taskqueue.workers import Workers

logger = logging.getLogger(__name__)

LOOKED_AT = 16  # tasks for each lane
POLICY_READ = 2.5  # seconds after which a change of the stream counts
SOONEST, LATEST = 0.02, 2.5  # seconds between two looks
OF_IDLE = 0.1  # of the time for which there was nothing to do
LEAVE_ME = Verdict(Task.State.READY)

MOST_WAITS = 1_000  # lanes that are passed over by name
GIVEN_BACK = Result("", is_given_back=True)

Answer = TypeVar("Answer")


class Leading:
    """One term of a consumer. All statements are those of the thread that calls ``turn``."""

    def __init__(self, stream: str, term: Term, wakeup: Wakeup) -> None:
        """Begin; ``wakeup`` is rung when a task has ended."""
        self._stream, self._term = stream, term
        self._using, self._connection = term.using, connections[term.using]
        self._wakeup = wakeup
        self._ended: SimpleQueue[tuple[RunningTask, Result]] = SimpleQueue()
        self._workers = Workers(self._note_end)
        self._unwritten: dict[RunningTask, Result] = {}
        self._due: list[Head] = []  # seen in this turn
        self._waits: dict[str, float] = {}
        self._sees_more = False
        self._policy: Policy | None = None
        self._policy_at = self._active_at = -math.inf
        self.in_hand: dict[int, RunningTask] = {}

    def start(self) -> None:
        """Take over what the former leader left. Raises LeaseLost, DatabaseUnavailable."""
        self._active_at = monotonic()
        taken = self._guarded(lambda: attempts.take_over(self._using, self._stream, self._term.fence))
        if taken:
            logger.warning("stream %s: %d tasks were left by the last consumer", self._stream, taken)

    def turn(self, *, may_begin: bool) -> float:
        """Write down what has ended, and begin what is due; return when to look again.

        Args:
            may_begin: False: the consumer is to stop.

        Raises:
            LeaseLost: this process does not lead any more.
            MustEnd: a task has run for too long.
            DatabaseUnavailable: nothing was done; call it again.
        """
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
        return self._next_look(now)

    def stop(self) -> None:
        """Ask the handlers to stop."""
        for task in self.in_hand.values():
            task.stop()

    def close(self) -> None:
        """End the threads."""
        self._workers.close()

    def _note_end(self, task: RunningTask, result: Result) -> None:
        self._ended.put((task, result))
        self._wakeup.ring()

    @property
    def _running(self) -> list[RunningTask]:
        return [task for task in self.in_hand.values() if task not in self._unwritten]

    def _collect(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                task, result = self._ended.get_nowait()
                self._unwritten.setdefault(task, result)

    def _read_policy(self, now: float) -> None:
        if now - self._policy_at < POLICY_READ:
            return
        read = partial(attempts.policy_of, self._using, self._stream)
        self._policy, self._policy_at = retrying(self._connection, read), now
        self._waits.clear()  # an operator may have retried what blocked them

    def _look(self, policy: Policy, free: int) -> list[Head]:
        """Return the tasks that may begin now, and take note of the lanes that have to wait."""
        by_lane, now = policy.lanes > 1, monotonic()
        most = LOOKED_AT * policy.lanes if by_lane else 1
        only_due = len(self._waits) >= MOST_WAITS
        without = self._lanes_passed_over(math.inf if only_due else now) if by_lane else set()
        look = partial(attempts.heads, self._using, self._stream, without, most, only_due=only_due)
        heads = retrying(self._connection, look)
        begin, waits = choose(heads, {task.pk for task in self._running}, by_lane=by_lane, free=free)
        self._waits.update({lane: now + seconds for lane, seconds in waits.items()})
        self._sees_more = bool(waits) and len(heads) == most > 1 and not only_due
        return begin

    def _lanes_passed_over(self, now: float) -> set[str]:
        return {task.lane for task in self._running} | {
            lane for lane, until in self._waits.items() if until > now
        }

    def _write_and_begin(self, policy: Policy, free: int) -> None:
        begun = self._guarded(lambda: self._send(policy, free))
        for task in self._unwritten:
            self.in_hand.pop(task.pk, None)
        self._unwritten.clear()
        self.in_hand.update({task.pk: task for task in begun})
        self._workers.run(begun, policy.lanes)

    def _send(self, policy: Policy, free: int) -> list[RunningTask]:
        for task, result in self._unwritten.items():
            self._end(policy, task, result)
        # What was just seen may begin as long as its fence matches; where this is sent again, that is over.
        heads, self._due = self._due, []
        if free <= 0:
            return []  # what was seen in an earlier turn, and could not be begun then, is not begun any more
        begun = [self._begin(policy, head) for head in heads or self._look(policy, free)]
        return [task for task in begun if task is not None]

    def _begin(self, policy: Policy, head: Head) -> RunningTask | None:
        verdict = after_death(policy, head.deaths) if head.deaths else None
        if verdict is not None:
            died = say("process_died", count=head.deaths)
            attempts.end(self._using, head.pk, head.fence, verdict, died)
            return None
        if not attempts.begin(self._using, head, self._term.fence, self._term.holder):
            return None
        return RunningTask(self._stream, head, self._term, handlers.find(head.type))

    def _end(self, policy: Policy, task: RunningTask, result: Result) -> None:
        if result.is_given_back:
            attempts.end(self._using, task.pk, task.fence, LEAVE_ME, "")
        elif result.error is not None:
            failures = task.failures + 1
            verdict = after_failure(policy, failures)
            if attempts.end(self._using, task.pk, task.fence, verdict, result.error, failures=failures):
                logger.warning(
                    "task %s: %s after attempt %d: %s", task, verdict.state, task.attempt, result.error
                )
        elif policy.done_kept:
            attempts.end(self._using, task.pk, task.fence, Verdict(Task.State.DONE), result.outcome)
        else:
            attempts.delete(self._using, task.pk, task.fence)

    def _guarded(self, send: Callable[[], Answer]) -> Answer:
        """Run ``send`` in a transaction that commits only while this process leads; it may be sent again."""

        def once() -> Answer:
            with transaction.atomic(using=self._using), self._term.guard():
                return send()

        return retrying(self._connection, once)

    def _stop_overdue(self, now: float) -> None:
        overdue = [task for task in self._running if task.overdue_at is not None and task.overdue_at <= now]
        if not overdue:
            return
        late = {task: Result("", say("ran_too_long", seconds=task.max_runtime)) for task in overdue}
        self._unwritten.update(late)
        self.cut_off("; ".join(f"{task}: {result.error}" for task, result in late.items()))

    def cut_off(self, why: str) -> Never:
        """Give the running tasks back, which no thread can be stopped in, for the process to end. Raises MustEnd."""
        self._collect()
        self._unwritten.update(dict.fromkeys(self._running, GIVEN_BACK))
        policy = self._policy
        if policy is not None:
            with contextlib.suppress(LeaseLost, DatabaseUnavailable):  # the next leader finds them running
                self._guarded(lambda: self._send(policy, 0))
        raise MustEnd(why)

    def _next_look(self, now: float) -> float:
        idle = now - self._active_at
        pace = 0.0 if self._sees_more else min(LATEST, max(SOONEST, idle * OF_IDLE))
        overdue = [task.overdue_at for task in self.in_hand.values() if task.overdue_at is not None]
        return min([now + pace, *overdue, *(until for until in self._waits.values() if until > now)])
