"""Handlers of timers in Celery workers: a node sends a Celery task for each due timer, and a worker handles it."""

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from celery import current_app, shared_task
from django.db import connections, router
from django.db.models import Q

from resourcepool.clock import monotonic
from resourcepool.db.open_transaction import refuse_callers_transaction
from resourcepool.db.retry import retrying
from resourcepool.db.threads import Wakeup
from resourcepool.db.timeouts import statement_timeout
from resourcepool.db.transactions import short_transaction
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.hints.broker import CONNECT_TIMEOUT, broker_connection, broker_named
from resourcepool.leases.statements import NOW
from resourcepool.leases.terms import default_holder
from resourcepool.taskqueue.policy import Result
from resourcepool.taskqueue.running_task import close_leaked_connections
from resourcepool.taskqueue.timers import claims, handlers
from resourcepool.taskqueue.timers.claims import Change, ClaimedTimer
from resourcepool.taskqueue.timers.handlers import RunningTimer
from resourcepool.taskqueue.timers.models import RESEND_AFTER, Timer, Topic
from resourcepool.taskqueue.timers.nodes import Node, node_labels, node_version
from resourcepool.taskqueue.timers.runner import (
    MAX_AHEAD,
    MIN_PAUSE,
    OPEN_TRANSACTION,
    DueTimer,
    DueTimers,
    TimerRunner,
)
from resourcepool.taskqueue.worker_loop import InHand, Worker, run_in_context, store
from resourcepool.tasks import EXPECTED, run_job

logger = logging.getLogger(__name__)

BROKER_PAUSE = 1.0  # seconds without hand-overs after an error of the broker
RETRY_INTERVAL = 0.1  # seconds between two tries to store a result


class DispatchingRunner(TimerRunner):
    """A node that runs no handlers: it hands timers over to Celery workers, which call ``handle``."""

    def _worker(self, using: str, node: Node) -> Worker[RunningTimer]:
        return TimerDispatcher(using, node, self._late_rate, self._wakeup)


class TimerDispatcher(Worker[RunningTimer]):
    """The worker of such a node.

    A timer is first reserved in the database, under a new fence, and then sent. If the message is lost or no process
    claims the timer, it is handed over again. A late message no longer matches the fence.
    """

    def __init__(self, using: str, node: Node, late_rate: float, wakeup: Wakeup) -> None:
        self.in_hand = InHand(wakeup)  # always empty
        self._using, self._wakeup = using, wakeup
        self._timers, self._paused_until = DueTimers(using, node, late_rate), 0.0

    def exchange(self, *, may_begin: bool) -> float:
        now = monotonic()
        if may_begin:
            self._timers.read_topics(now)
        due, next_at = self._timers.choose(MAX_AHEAD if may_begin and now >= self._paused_until else 0)
        if due and not self._hand_over(due):
            return monotonic() + MIN_PAUSE  # others claimed or locked them
        return next_at

    def _hand_over(self, due: list[DueTimer]) -> int:
        """Hand due timers over; while the broker cannot be reached, the database is not changed."""
        with ExitStack() as stack:
            try:
                send = stack.enter_context(celery_sender())
            except Exception as error:  # noqa: BLE001 (any of any broker)
                logger.warning("timers cannot be handed over: %s: %s", type(error).__name__, error)
                self._paused_until = monotonic() + BROKER_PAUSE
                return len(due)  # do not query again at once
            handed, _ = self._timers.claim(due, partial(hand_over, self._using))
            for number, timer in enumerate(handed):
                handler = handlers.find(timer.topic.name)
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


def hand_over(using: str, due: Collection[int], topics: Mapping[str, Topic], holder: str) -> claims.Answer:
    """Reserve due timers for other processes, which claim them by the returned fences.

    A timer stays pending, so that it can be cancelled, and is due again after ``RESEND_AFTER``. Its ``started_at`` is
    the time at which it was first handed over. See ``finish_and_claim``.
    """
    unclaimed = set[int]()

    def reserve(timer: ClaimedTimer, row: claims.Row) -> Change:
        columns = {
            "state": Timer.State.PENDING.value,
            "crashes": timer.crashes,
            "previous_end": timer.previous_end,
        }
        if row["state"] == Timer.State.PENDING and row["holder"] not in ("", holder):
            unclaimed.add(timer.pk)
        else:
            columns["started_at"] = NOW  # the start of its wait
        return Change("hand over", RESEND_AFTER, tuple(columns.items()))

    with short_transaction(connections[using]):
        handed = claims.claim(using, claims.due_rows(using, due, holder), topics, holder, reserve)
    if unclaimed:
        logger.warning("%d timers were handed over but not claimed within %g s", len(unclaimed), RESEND_AFTER)
    return handed, set()


def claim_handed_over(using: str, pk: int, fence: int, topic: Topic, holder: str) -> ClaimedTimer | None:
    """Claim a timer that was handed over under this fence; None: the fence is outdated. See ``finish_and_claim``."""
    rows = Timer.objects.using(using).filter(pk=pk, topic_id=topic.name).unfinished()
    matching = rows.filter(Q(fence=fence, state=Timer.State.PENDING) | Q(holder=holder))
    with short_transaction(connections[using]):
        claimed = claims.claim(using, matching, {topic.name: topic}, holder)
    return claimed[0] if claimed else None


@contextlib.contextmanager
def celery_sender() -> Iterator[Callable[[int, int, float | None], object]]:
    """Yield a function that sends a Celery task for a timer: its primary key, its fence and its ``max_runtime``.

    A handler's ``max_runtime`` is the hard time limit of its task: a prefork worker kills the process.

    Raises:
        Exception: of the broker's client.
    """
    with broker_connection(current_app) as connection:
        connection.ensure_connection(max_retries=1, timeout=CONNECT_TIMEOUT)

        def send(pk: int, fence: int, max_runtime: float | None) -> None:
            limits: dict[str, Any] = {"expires": RESEND_AFTER, "time_limit": max_runtime, "retry": False}
            with broker_named(connection):
                current_app.send_task("resourcepool.run_timer", [pk, fence], connection=connection, **limits)

        yield send


@shared_task(name="resourcepool.run_timer", ignore_result=True, throws=EXPECTED)
def run_timer(pk: int, fence: int) -> str:
    """Handle the timer that ``resourcepool_celery_timers`` handed over under this fence."""
    return run_job("run_timer", lambda: handle(pk, fence))


class _HandedTimer(RunningTimer):
    def ends_process(self, error: BaseException) -> bool:
        return not isinstance(error, Exception)  # Celery ends a process by SystemExit


def handle(pk: int, fence: int) -> str | None:
    """Claim the timer, run its handler in this thread, and store the result; return a line for the log.

    If Celery ends the process meanwhile, the timer's lease expires, which counts as a crash.

    Returns:
        None: the fence is outdated (the timer was claimed, cancelled or handed over again), or this process may not
            handle the topic; the timer is handed over again then.

    Raises:
        ClaimInTransaction: a transaction is open.
        DatabaseUnavailable: the timer is handed over again, after its ttl if it was claimed.
    """
    using = router.db_for_write(Timer)
    refuse_callers_transaction(connections[using], OPEN_TRANSACTION)
    handlers.discover()
    with statement_timeout():
        claimed = retrying(connections[using], partial(_claim, using, pk, fence, default_holder()))
    if claimed is None:
        return None
    timer = _HandedTimer(using, claimed, handlers.find(claimed.topic.name))
    try:
        result = run_in_context(timer)
    except BaseException:
        timer.lease._stop_renewing()
        raise
    ended = timer.ended(close_leaked_connections(result))
    timer.lease._stop_renewing()  # a renewal would find another fence
    _store(using, timer, ended)
    return f"{timer}: {ended.how} in attempt {timer.attempt}"


def _claim(using: str, pk: int, fence: int, holder: str) -> ClaimedTimer | None:
    # An earlier try whose reply was lost has changed the fence, but has set this holder.
    rows = Timer.objects.using(using).filter(Q(fence=fence) | Q(holder=holder), pk=pk)
    row = rows.select_related("topic").first()
    if row is None or handlers.find(row.topic_id) is None:
        return None
    if row.topic.is_paused or row.topic.refusal(node_labels(), node_version()):
        return None
    return claim_handed_over(using, pk, fence, row.topic, holder)


def _store(using: str, timer: RunningTimer, ended: Result) -> None:
    """Store the result; retry for up to a ttl while the row is locked or the database cannot be reached."""
    gives_up_at = monotonic() + timer.claimed.topic.ttl

    def send(ends: Mapping[RunningTimer, Result]) -> claims.Answer:
        pairs = [(timer.claimed, result) for timer, result in ends.items()]
        return retrying(connections[using], partial(claims.finish_and_claim, using, pairs, [], {}, ""))

    while True:
        try:
            with statement_timeout():
                _, locked = store(connections[using], {timer: ended}, send)
            error = DatabaseUnavailable(f"{timer}: its row is locked") if locked else None
        except DatabaseUnavailable as unavailable:
            error = unavailable
        if error is None:
            timer.lease._mark_released()
            return
        if monotonic() >= gives_up_at:
            raise error
        time.sleep(RETRY_INTERVAL)
