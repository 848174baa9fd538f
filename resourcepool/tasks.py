"""Celery tasks: each calls one function and returns its result in one line. Correctness never depends on them.

They take and return JSON only, and are safe to start twice at once: the second one returns "being done elsewhere".
``manage.py resourcepool_beat --install`` schedules them with django-celery-beat.

While the database is down or settings are wrong, they fail with one line in the log; the next beat tries again.
"""

import logging
import traceback
from collections.abc import Callable

from celery import shared_task
from celery.exceptions import WorkerShutdown, WorkerTerminate
from django.db import InterfaceError, OperationalError

from resourcepool.exceptions import BadOption, CheckerBroken, DatabaseUnavailable, LeaseLost, NotMigrated
from resourcepool.sweeps import sweep as sweeps
from resourcepool.taskqueue.timers import handover

ELSEWHERE = "being done elsewhere"
TAKEN_OVER = "being done elsewhere by now"
# Celery logs these without a traceback.
EXPECTED = (BadOption, DatabaseUnavailable, NotMigrated, OperationalError, InterfaceError)

logger = logging.getLogger(__name__)


@shared_task(name="resourcepool.sweep", ignore_result=True, throws=EXPECTED)
def sweep() -> str:
    """Return resources to service that are due; clear and report expired leases; report alarms."""
    return _done("sweep", sweeps.sweep)


@shared_task(name="resourcepool.prune_history", ignore_result=True, throws=EXPECTED)
def prune_history() -> str:
    """Prune old rows of the history."""
    return _done("prune_history", sweeps.prune)


@shared_task(name="resourcepool.refresh_statistics", ignore_result=True, throws=EXPECTED)
def refresh_statistics() -> str:
    """Record a sample of each pool, for the charts."""
    return _done("refresh_statistics", sweeps.refresh_statistics)


@shared_task(name="resourcepool.check_health", ignore_result=True, throws=EXPECTED)
def check_health(label: str) -> str:
    """Check the free resources of the pool ``label`` whose last health check is due again."""
    try:
        return _done("check_health", lambda: sweeps.check_health(label))
    except CheckerBroken as error:  # reported as an alarm
        return str(error)


@shared_task(name="resourcepool.run_timer", ignore_result=True, throws=EXPECTED)
def run_timer(pk: int, fence: int) -> str:
    """Handle the timer that ``resourcepool_timers --celery`` handed over under this fence."""
    return _done("run_timer", lambda: handover.handle(pk, fence, _ends_process))


def _ends_process(error: BaseException) -> bool:
    """Whether Celery ends this process with ``error``; billiard raises SystemExit in a pool process on a signal."""
    if isinstance(error, SystemExit):
        *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
        return str(frame.f_globals.get("__name__")).startswith("billiard.")
    return isinstance(error, KeyboardInterrupt | WorkerShutdown | WorkerTerminate)


def _done(name: str, job: Callable[[], str | None]) -> str:
    try:
        return job() or ELSEWHERE
    except LeaseLost as error:  # it stood still for too long; its changes until then are kept
        logger.warning("%s is %s: %s", name, TAKEN_OVER, error)
        return TAKEN_OVER
    except BadOption as error:
        logger.warning("%s skipped: fix the settings first: %s", name, error)
        raise
    except EXPECTED as error:
        logger.warning("%s failed; the next beat tries again: %s", name, error)
        raise
