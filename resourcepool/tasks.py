"""Celery tasks: each calls one function and returns its one line. Nothing depends on them for being correct.

They take and return JSON only, and are safe to start twice at once: the second one finds the job taken, and says so.
``manage.py resourcepool_beat --install`` has django-celery-beat start them.
"""

from celery import shared_task

from resourcepool.exceptions import CheckerBroken
from resourcepool.sweeps import sweep as sweeps
from resourcepool.sweeps import validity

ELSEWHERE = "being done elsewhere"


@shared_task(name="resourcepool.sweep", ignore_result=True)
def sweep() -> str:
    """Return to service what is due, clear and tell what ran out."""
    return sweeps.sweep() or ELSEWHERE


@shared_task(name="resourcepool.prune_history", ignore_result=True)
def prune_history() -> str:
    """Remove what is old from the history."""
    return sweeps.prune() or ELSEWHERE


@shared_task(name="resourcepool.refresh_statistics", ignore_result=True)
def refresh_statistics() -> str:
    """Write down how the pools stand."""
    return sweeps.refresh_statistics() or ELSEWHERE


@shared_task(name="resourcepool.check_validity", ignore_result=True)
def check_validity(label: str) -> str:
    """Check the resources of the pool ``label`` that nobody holds and that were not checked lately."""
    try:
        return validity.check_validity(label) or ELSEWHERE
    except CheckerBroken as error:  # the alarm says so
        return str(error)
