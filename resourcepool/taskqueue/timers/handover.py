"""Handles one timer that a node has handed over to this process, such as a Celery worker."""

import logging
import os
import time
from collections.abc import Callable
from functools import partial

from django.db import connections, router
from django.db.models import Q

from resourcepool.clock import monotonic
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import statement_timeout
from resourcepool.events import sentence_for
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases.terms import default_holder
from resourcepool.taskqueue import sessions
from resourcepool.taskqueue.handler_threads import close_leaked_connections, end_if_forked, run_in_context
from resourcepool.taskqueue.running_task import Result
from resourcepool.taskqueue.timers import claims, handlers
from resourcepool.taskqueue.timers.claims import AttemptEnd, ClaimedTimer
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.taskqueue.timers.rules import may_handle
from resourcepool.taskqueue.timers.runner import node_labels, node_version, refuse_transaction
from resourcepool.taskqueue.timers.running_timer import RunningTimer

logger = logging.getLogger(__name__)

RETRY_INTERVAL = 0.1  # seconds between two tries to store a result
MARGIN = 0.5  # seconds by which the caller's watch on max_runtime may have started earlier


def handle(
    pk: int, fence: int, ends_process: Callable[[BaseException], bool] = lambda _error: False
) -> str | None:
    """Claim the timer, run its handler in this thread, and store the result; return a line for the log.

    Args:
        ends_process: whether an exception of the handler means that this process has to exit. It is raised again
            after the timer was released. If the timer had exceeded its max_runtime, it has failed, as on a node.

    Returns:
        None: the fence is outdated (the timer was claimed, cancelled or handed over again), or this process may not
            handle the topic; the timer is handed over again then.

    Raises:
        ClaimInTransaction: a transaction is open.
        DatabaseUnavailable: the timer is handed over again, after its ttl if it was claimed.
    """
    using, began_at = router.db_for_write(Timer), monotonic()
    refuse_transaction(using)
    handlers.discover()
    with statement_timeout():
        claimed = retrying(connections[using], partial(_claim, using, pk, fence, default_holder()))
    if claimed is None:
        return None
    timer, pid = RunningTimer(using, claimed, handlers.find(claimed.rule.name)), os.getpid()
    timer.ends_process = ends_process
    try:
        sessions.require_health_check()
        result = run_in_context(timer)
    except BaseException:
        end_if_forked(pid)
        cut_off = _cut_off(timer, began_at)
        close_leaked_connections(Result("", ""))  # the exception may have interrupted a statement
        _store(using, timer, timer.ended(cut_off, is_cut_off=True))
        raise
    end_if_forked(pid)
    ended = timer.ended(close_leaked_connections(result))
    _store(using, timer, ended)
    return f"{timer}: {ended.how} in attempt {timer.attempt}"


def _cut_off(timer: RunningTimer, began_at: float) -> Result:
    most = timer.max_runtime
    if most is not None and monotonic() >= began_at + most - MARGIN:
        logger.warning("%s ran for more than %g s", timer, most)
        return Result("", sentence_for("ran_too_long", seconds=most))
    logger.warning("%s is released: its process has to exit", timer)
    return Result("", is_given_back=True)


def _claim(using: str, pk: int, fence: int, holder: str) -> ClaimedTimer | None:
    # An earlier try whose reply was lost has changed the fence, but has set this holder.
    rows = Timer.objects.using(using).filter(Q(fence=fence) | Q(holder=holder), pk=pk)
    topic = rows.values_list("topic_id", flat=True).first()
    if topic is None or handlers.find(topic) is None:
        return None
    rule = claims.read_rules(using, [topic]).get(topic)
    if rule is None or rule.is_paused or not may_handle(rule, node_labels(), node_version()):
        return None
    return claims.claim_handed_over(using, pk, fence, rule, holder)


def _store(using: str, timer: RunningTimer, ended: AttemptEnd) -> None:
    """Store the result; retry for up to a ttl while the row is locked or the database cannot be reached."""
    gives_up_at = monotonic() + timer.claimed.rule.ttl
    send = partial(claims.finish_and_claim, using, [ended], [], {}, ended.claimed.holder)
    timer.lease._stop_renewing()  # a renewal would find another fence
    while True:
        try:
            with statement_timeout():
                _, locked = retrying(connections[using], send)
            error = DatabaseUnavailable(f"{timer}: its row is locked") if locked else None
        except DatabaseUnavailable as unavailable:
            error = unavailable
        if error is None:
            timer.lease._mark_released()
            return
        if monotonic() >= gives_up_at:
            raise error
        time.sleep(RETRY_INTERVAL)
