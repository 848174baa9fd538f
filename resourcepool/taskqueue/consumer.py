"""The consumer of a stream: it campaigns for the lead, and runs the tasks in order while it leads."""

import contextlib
import logging
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Never, TypeVar

from django.db import connections, router, transaction
from django.utils import translation

from resourcepool import hints, options
from resourcepool.clock import monotonic
from resourcepool.db.retry import retrying
from resourcepool.db.threads import Wakeup
from resourcepool.db.timeouts import statement_timeout
from resourcepool.elections.election import Election, Term
from resourcepool.events import sentence_for
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost
from resourcepool.options import Seconds
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.taskqueue import attempts, handlers
from resourcepool.taskqueue.abstract import event_reason, existing_names
from resourcepool.taskqueue.models import MAX_KEY, SETTINGS, Stream, Task
from resourcepool.taskqueue.policy import End, Result, TaskSnapshot, after_crash, choose, end_of
from resourcepool.taskqueue.running_task import RunningTask
from resourcepool.taskqueue.worker_loop import (
    GRACE,
    PAUSE_AFTER_FAILURE,
    InHand,
    Runner,
    Worker,
    exit_process,
    store,
)

logger = logging.getLogger(__name__)

SETTINGS_CHECK_EVERY = 2.5  # seconds, while settings are invalid
TASKS_PER_LANE = 16  # read ahead
SETTINGS_MAX_AGE = 2.5  # seconds until a change of the stream's settings takes effect
MIN_PAUSE, MAX_PAUSE = 0.02, 2.5  # seconds between two queries
RENEW_TIMEOUT = 1.0  # seconds
IDLE_SHARE = 0.1  # pause as a share of the idle time so far

Answer = TypeVar("Answer")


class Consumer(Runner):
    """Runs the tasks of one stream, in one process at a time; the other processes are standbys.

        Consumer("oracle").run()

    The transactions that begin and end tasks also check that this process still leads. So no task is lost, and the
    tasks of a lane run in order. A task runs again only if its consumer crashed, or was suspended for longer than its
    term; ``task.guard()`` of the first attempt fails then.

    Not promised: a handler that does not use ``guard`` may still have effects after its process has lost the lead.
    """

    def __init__(
        self, stream: str, *, grace: Seconds = GRACE, exit_process: Callable[[str], Never] = exit_process
    ) -> None:
        """Create the consumer; ``run`` starts it.

        Args:
            stream: the name of an existing stream.
            grace: seconds or timedelta that running handlers get after ``stop``.
            exit_process: ends the process; called with a reason when a handler must end and cannot be stopped: it
                exceeded its ``max_runtime``, or the grace period after ``stop``, or the lead was lost, or the
                consumer itself has failed.

        Raises:
            BadOption: a value is not allowed.
        """
        self.stream = options.text("stream", stream, most=MAX_KEY)
        super().__init__(grace, exit_process)
        self._wrong = ""
        self.term: Term | None = None  # while this consumer leads

    def run(self) -> None:
        """Campaign and lead, again and again, until ``stop``.

        Raises:
            BadOption: there is no such stream.
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: the database cannot be reached at the start. Later outages are waited for.
        """
        row = self.look_up()
        settings = ", ".join(f"{name}={getattr(row, name)}" for name in (*SETTINGS, "is_paused"))
        logger.info("stream %s: %s", row, settings)
        hints.listen(self._wakeup.wake)
        while not self._is_stopping:
            try:
                self._serve_one_term()
            except (LeaseLost, DatabaseUnavailable) as error:
                logger.warning("stream %s: %s", self.stream, error)
                self._pause(PAUSE_AFTER_FAILURE)

    def _serve_one_term(self) -> None:
        row = self.look_up()
        if not self._may_serve(row):
            return
        terms = {"ttl": row.term_ttl, "lock_delay": row.lock_delay}
        election = Election(self.stream, Stream, **terms, on_lost=lambda _: self._wakeup.wake())
        try:
            term = election.campaign(stop=lambda: self._is_stopping)
        except AcquireTimeout:
            return  # stopping
        try:
            with term:
                mine = Stream.objects.using(term.using).filter(pk=self.stream, fence=term.fence)
                with statement_timeout():
                    retrying(connections[term.using], partial(mine.update, address=hints.address()))
                self.term = term
                logger.info("stream %s: leading, term %d", row, term.fence)
                worker = StreamWorker(self.stream, term, self._wakeup)
                with statement_timeout():
                    worker.take_over()
                self._serve(f"stream {self.stream}", worker)
        finally:
            self.term = None

    def _may_serve(self, row: Stream) -> bool:
        """Return whether the settings are valid; if not, log that once, and pause."""
        with translation.override("en"):
            wrong = row.wrong_settings()
        if wrong and wrong != self._wrong:
            logger.error("stream %s: nothing runs until these settings are corrected: %s", self.stream, wrong)
        self._wrong = wrong
        if wrong:
            self._pause(SETTINGS_CHECK_EVERY)
        return not wrong

    def look_up(self) -> Stream:
        """Return the row of the stream. Raises BadOption if there is none, DatabaseUnavailable."""
        using = router.db_for_write(Stream)
        streams = Stream.objects.using(using)
        with statement_timeout():
            row: Stream | None = retrying(connections[using], streams.filter(pk=self.stream).first)
        if row is None:
            raise BadOption("stream", self.stream, existing_names(Stream, using))
        return row


class StreamWorker(Worker[RunningTask]):
    """The worker of a consumer during one term."""

    def __init__(self, stream: str, term: Term, wakeup: Wakeup) -> None:
        self.in_hand = InHand(wakeup)
        self._reported: set[int] = set()  # tasks whose outcome already says that there is no handler
        self._stream, self._term = stream, term
        self._using, self._connection = term.using, connections[term.using]
        self._due: list[TaskSnapshot] = []  # read in this exchange
        self._waits: dict[str, float] = {}  # {lane: until when its first task has to wait}
        self._has_more = False
        self._settings: Stream | None = None
        self._settings_at = self._active_at = -math.inf

    def take_over(self) -> None:
        """Take over the tasks that the former leader was running. Raises LeaseLost, DatabaseUnavailable."""
        self._active_at = monotonic()
        taken = self._guarded(lambda: attempts.take_over(self._using, self._stream, self._term.fence))
        if taken:
            logger.warning("stream %s: tasks taken over from the last consumer: %d", self._stream, taken)

    def exchange(self, *, may_begin: bool) -> float:
        self._term.ensure_held()  # while a task runs there may be no write that would notice a lost term
        now = monotonic()
        self._read_settings(now)
        settings = self._settings
        if settings is None:
            raise LeaseLost(f"stream {self._stream!r} has been deleted")
        free = settings.lanes - len(self.in_hand.running) if may_begin and not settings.is_paused else 0
        self._has_more = False
        self._due = self._choose_tasks(settings, free) if free > 0 and not self.in_hand.ends else []
        if self.in_hand.ends or self._due:
            send = partial(self._send, settings, free)
            begun = store(self._connection, self.in_hand.ends, lambda ends: self._guarded(partial(send, ends)))
            self.in_hand.forget(self.in_hand.ends)
            self.in_hand.run(begun, settings.lanes)
            self._active_at = now
        return self._next_run(now)

    def renew_if_due(self) -> None:
        """Renew the term if it is due; it cannot be renewed while a transaction with its guard is open.

        That transaction may have waited for a locked task for longer than a term.

        Raises:
            LeaseLost: this process has lost the lead.
        """
        if self._term._trust.due_at <= monotonic():
            with contextlib.suppress(DatabaseUnavailable), statement_timeout(RENEW_TIMEOUT):
                self._term.renew()

    def _read_settings(self, now: float) -> None:
        if now - self._settings_at < SETTINGS_MAX_AGE:
            return
        rows = Stream.objects.using(self._using).filter(pk=self._stream)
        row, self._settings_at = retrying(self._connection, rows.first), now
        # Invalid settings, written past validation, must not interrupt running tasks: the former ones stay in effect.
        if row is None or self._settings is None or not row.wrong_settings():
            self._settings = row
        self._waits.clear()  # an operator may have retried the blocked task

    def _choose_tasks(self, settings: Stream, free: int) -> list[TaskSnapshot]:
        """Return the tasks that may begin now, and remember the lanes that have to wait."""
        by_lane, now = settings.lanes > 1, monotonic()
        most = TASKS_PER_LANE * settings.lanes if by_lane else 1
        waiting = {lane for lane, until in self._waits.items() if until > now}
        without = waiting | {task.lane for task in self.in_hand.running} if by_lane else set()
        read = partial(attempts.first_tasks, self._using, self._stream, without, most)
        heads = retrying(self._connection, read)
        in_hand = {task.pk: task.crashes for task in self.in_hand.running}
        begin, waits, without_handler = choose(
            heads,
            in_hand,
            by_lane=by_lane,
            free=free,
            max_crashes=settings.max_crashes,
            known=handlers.task_registry.known,
        )
        self._report_unknown(without_handler)
        self._waits.update({lane: now + seconds for lane, seconds in waits.items()})
        self._has_more = bool(waits) and len(heads) == most > 1
        return begin

    def _report_unknown(self, heads: list[TaskSnapshot]) -> None:
        """Store in the first task of each type that this process has no handler for it."""
        for kind, head in {head.type: head for head in reversed(heads)}.items():
            if head.pk in self._reported:
                continue
            self._reported.add(head.pk)
            why = sentence_for("no_handler", name=kind)
            logger.warning("stream %s: task %s is skipped: %s", self._stream, head.key, why)
            retrying(self._connection, partial(attempts.write_outcome, self._using, head, why))

    def _send(self, settings: Stream, free: int, ends: Mapping[RunningTask, Result]) -> list[RunningTask]:
        """Store results and begin tasks, in one transaction."""
        self._end(settings, ends)
        # A transaction that is sent again has to read them again.
        heads, self._due = self._due, []
        if free <= 0:
            return []
        return self._begin(settings, heads or self._choose_tasks(settings, free))

    def _begin(self, settings: Stream, heads: list[TaskSnapshot]) -> list[RunningTask]:
        may_run = []
        for head in heads:
            state = after_crash(settings, head.crashes) if head.crashes else None
            if state is None:
                may_run.append(head)
            else:
                end = End(state, sentence_for("process_crashed", count=head.crashes))
                if attempts.end(self._using, [(head.pk, head.fence)], end):
                    self._record_failure(head, end)
        if not may_run:
            return []
        begun = attempts.begin(self._using, may_run, self._term.fence, self._term.holder)
        if settings.lanes > 1:
            begun = attempts.with_params(self._using, begun)
        return [RunningTask(self._stream, head, self._term, handlers.find(head.type)) for head in begun]

    def _end(self, settings: Stream, ends: Mapping[RunningTask, Result]) -> None:
        by_end: dict[End, list[RunningTask]] = {}
        for task, result in ends.items():
            end, mine = end_of(settings, result, task.failures, task.crashes), [(task.pk, task.fence)]
            if result.error is None:
                by_end.setdefault(end, []).append(task)
            elif attempts.end(self._using, mine, end):
                logger.warning("task %s: %s after attempt %d: %s", task, end.state, task.attempt, end.outcome)
                if end.state != Task.State.READY:
                    self._record_failure(task, end)
        for end, tasks in by_end.items():
            attempts.end(self._using, [(task.pk, task.fence) for task in tasks], end)

    def _record_failure(self, task: TaskSnapshot | RunningTask, end: End) -> None:
        assert end.state is not None  # noqa: S101 (for the type checker: a failed task is not deleted)
        what, reason = EventKind(end.state), event_reason(f"{self._stream}/{task.key}", end.outcome)
        emit(RowEvent(what, Task, self._using, task.pk, task.fence, self._term.holder, reason))

    def _guarded(self, send: Callable[[], Answer]) -> Answer:
        """Run ``send`` in a transaction that commits only while this process leads; it may be called again."""

        def once() -> Answer:
            with transaction.atomic(using=self._using), self._term.guard():
                return send()

        return retrying(self._connection, once)

    def _next_run(self, now: float) -> float:
        idle = now - self._active_at
        pause = 0.0 if self._has_more else min(MAX_PAUSE, max(MIN_PAUSE, idle * IDLE_SHARE))
        return min([now + pause, *(until for until in self._waits.values() if until > now)])
