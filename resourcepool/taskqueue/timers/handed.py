"""Handles one timer that another process has handed over: in a Celery worker, say."""

import os
from functools import partial

from django.db import connections, router
from django.db.models import Q

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import answer_timeout, retrying
from resourcepool.database.wakeup import Wakeup
from resourcepool.exceptions import ClaimInTransaction, DatabaseUnavailable
from resourcepool.leases.terms import default_holder
from resourcepool.taskqueue.timers import claiming, handling
from resourcepool.taskqueue.timers.claiming import Claimed, Ended
from resourcepool.taskqueue.timers.gate import may_handle
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.taskqueue.timers.runner import node_labels, node_version
from resourcepool.taskqueue.timers.running import RunningTimer
from resourcepool.taskqueue.workers import tidied

AGAIN = 0.1  # seconds between two tries to write an end


def handle(pk: int, fence: int) -> str | None:
    """Claim the timer, run its handler in this thread, write down what came of it; return a line about it.

    Returns:
        None: it was not to be had under this fence (taken, cancelled, handed over again), or this process may not
            handle its topic; then it is handed over again.

    Raises:
        ClaimInTransaction: a transaction is open.
        DatabaseUnavailable: it is handed over again, after its ttl if it was claimed.
    """
    using = router.db_for_write(Timer)
    if connections[using].in_atomic_block:
        raise ClaimInTransaction(f"timers are handled outside a transaction; one is open on {using!r}")
    handling.discover()
    with answer_timeout():
        claimed = retrying(connections[using], partial(_claim, using, pk, fence, default_holder()))
    if claimed is None:
        return None
    timer, pid = RunningTimer(using, claimed, handling.find(claimed.rule.name)), os.getpid()
    result = timer.run()
    if os.getpid() != pid:
        os._exit(0)  # a child that the handler forked: no second worker
    result = tidied(result)
    _write(using, timer, timer.ended(result))
    how = "given back" if result.is_given_back else "handled" if result.error is None else "failed"
    return f"{timer}: {how} in attempt {timer.attempt}"


def _claim(using: str, pk: int, fence: int, holder: str) -> Claimed | None:
    # By its holder, too: a try whose answer was lost has changed the fence.
    rows = Timer.objects.using(using).filter(Q(fence=fence) | Q(holder=holder), pk=pk)
    topic = rows.values_list("topic_id", flat=True).first()
    if topic is None or handling.find(topic) is None:
        return None
    rule = claiming.rules(using, [topic]).get(topic)
    if rule is None or rule.is_paused or not may_handle(rule, node_labels(), node_version()):
        return None
    return claiming.take(using, pk, fence, rule, holder)


def _write(using: str, timer: RunningTimer, ended: Ended) -> None:
    """Write the end; somebody may have the row locked for a moment, or the database be away."""
    gives_up_at, wakeup = monotonic() + timer.claimed.rule.ttl, Wakeup()
    timer.lease.let_go()  # no renewal finds another fence
    while not _is_written(using, ended, is_last=monotonic() >= gives_up_at):
        wakeup.sleep_until(monotonic() + AGAIN)
    timer.lease.was_released()


def _is_written(using: str, ended: Ended, *, is_last: bool) -> bool:
    try:
        with answer_timeout():
            send = partial(claiming.exchange, using, [ended], [], {}, ended.claimed.holder)
            _, locked = retrying(connections[using], send)
    except DatabaseUnavailable:
        if is_last:
            raise
        return False
    if locked and is_last:
        raise DatabaseUnavailable(f"timer {ended.claimed.name}: somebody has locked its row")
    return not locked
