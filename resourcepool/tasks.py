"""Celery tasks: each calls one function and returns its result in one line. Correctness never depends on them.

They take and return JSON only, and are safe to start twice at once: the second one returns "being done elsewhere".
``manage.py resourcepool_beat --install`` schedules them with django-celery-beat.

While the database is down or settings are wrong, they fail with one line in the log; the next beat tries again.
"""

import logging
from collections.abc import Callable

from celery import shared_task
from django.db import InterfaceError, OperationalError

from resourcepool.exceptions import BadOption, CheckerBroken, DatabaseUnavailable, LeaseLost, NotMigrated
from resourcepool.sweeps import sweep as sweeps

ELSEWHERE = "being done elsewhere"
TAKEN_OVER = "being done elsewhere by now"
# Celery logs these without a traceback.
EXPECTED = (BadOption, DatabaseUnavailable, NotMigrated, OperationalError, InterfaceError)

logger = logging.getLogger(__name__)


@shared_task(name="resourcepool.sweep", ignore_result=True, throws=EXPECTED)
def sweep() -> str:
    """Return resources to service that are due; clear and report expired leases; report alarms."""
    return run_job("sweep", sweeps.sweep)


@shared_task(name="resourcepool.prune_history", ignore_result=True, throws=EXPECTED)
def prune_history() -> str:
    """Prune old rows of the history."""
    return run_job("prune_history", sweeps.prune)


@shared_task(name="resourcepool.refresh_statistics", ignore_result=True, throws=EXPECTED)
def refresh_statistics() -> str:
    """Record a sample of each pool, for the charts."""
    return run_job("refresh_statistics", sweeps.refresh_statistics)


@shared_task(name="resourcepool.check_health", ignore_result=True, throws=EXPECTED)
def check_health(label: str) -> str:
    """Check the free resources of the pool ``label`` whose last health check is due again."""
    try:
        return run_job("check_health", lambda: sweeps.check_health(label))
    except CheckerBroken as error:  # reported as an alarm
        return str(error)


def run_job(name: str, job: Callable[[], str | None]) -> str:
    """Run a job and return its result in one line; log errors that are expected in one line."""
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
