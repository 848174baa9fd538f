"""Celery tasks: each calls one function and returns its one line. Nothing depends on them for being correct.

They take and return JSON only, and are safe to start twice at once: the second one finds the job taken, and says so.
``manage.py resourcepool_beat --install`` has django-celery-beat start them.

While the database is away, or settings are wrong, they fail with a line in the log; only the next beat tries again.
"""

import logging
import traceback
from collections.abc import Callable

from celery import shared_task
from celery.exceptions import WorkerShutdown, WorkerTerminate
from django.db import InterfaceError, OperationalError

from resourcepool.exceptions import BadOption, CheckerBroken, DatabaseUnavailable, LeaseLost, NotMigrated
from resourcepool.sweeps import health_checks
from resourcepool.sweeps import sweep as sweeps
from resourcepool.taskqueue.timers import handover

ELSEWHERE = "being done elsewhere"
TAKEN_OVER = "being done elsewhere by now"
# Celery logs these without a traceback.
EXPECTED = (BadOption, DatabaseUnavailable, NotMigrated, OperationalError, InterfaceError)

logger = logging.getLogger(__name__)


@shared_task(name="resourcepool.sweep", ignore_result=True, throws=EXPECTED)
def sweep() -> str:
    """Return to service what is due, clear and tell what ran out."""
    return _done("sweep", sweeps.sweep)


@shared_task(name="resourcepool.prune_history", ignore_result=True, throws=EXPECTED)
def prune_history() -> str:
    """Remove what is old from the history."""
    return _done("prune_history", sweeps.prune)


@shared_task(name="resourcepool.refresh_statistics", ignore_result=True, throws=EXPECTED)
def refresh_statistics() -> str:
    """Write down how the pools stand."""
    return _done("refresh_statistics", sweeps.refresh_statistics)


@shared_task(name="resourcepool.check_validity", ignore_result=True, throws=EXPECTED)
def check_validity(label: str) -> str:
    """Check the resources of the pool ``label`` that nobody holds and that were not checked lately."""
    try:
        return _done("check_validity", lambda: health_checks.check_validity(label))
    except CheckerBroken as error:  # the alarm says so
        return str(error)


@shared_task(name="resourcepool.run_timer", ignore_result=True, throws=EXPECTED)
def run_timer(pk: int, fence: int) -> str:
    """Handle the timer that ``resourcepool_timers --celery`` has handed over under this fence."""
    return _done("run_timer", lambda: handover.handle(pk, fence, _ends_process))


def _ends_process(error: BaseException) -> bool:
    """Tell whether Celery ends this process by it. A signal to one of its pool is a SystemExit, raised by billiard."""
    if isinstance(error, SystemExit):
        *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
        return str(frame.f_globals.get("__name__")).startswith("billiard.")
    return isinstance(error, KeyboardInterrupt | WorkerShutdown | WorkerTerminate)


def _done(name: str, job: Callable[[], str | None]) -> str:
    try:
        return job() or ELSEWHERE
    except LeaseLost as error:  # it stood still for too long; what it had done until then stands
        logger.warning("%s is %s: %s", name, TAKEN_OVER, error)
        return TAKEN_OVER
    except BadOption as error:
        logger.warning("%s was not done, nor will be before the settings are mended: %s", name, error)
        raise
    except EXPECTED as error:
        logger.warning("%s was not done, the next one will: %s", name, error)
        raise
