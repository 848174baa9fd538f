"""Does a job unless somebody else is just doing it, and writes down what came of it."""

import logging
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, IntegrityError, InterfaceError, connections, router, transaction

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow
from resourcepool.exceptions import ResourcePoolError
from resourcepool.jobs.models import MAX_RESULT, Job
from resourcepool.leases import verbs
from resourcepool.leases.holder import default_holder
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Terms

TTL = 60.0  # seconds after which a job whose process died may be done by another one
TROUBLE = (DatabaseError, InterfaceError, ResourcePoolError)

logger = logging.getLogger(__name__)


def run(name: str, work: Callable[[Lease], str]) -> str | None:
    """Do ``work`` as the job ``name``, and return what it says was done; None when it is being done elsewhere.

    Args:
        work: is given the job's lease: long work looks now and then (``ensure_held``), and returns one line.

    Raises:
        DatabaseUnavailable: and whatever ``work`` raises; that is noted, too, if the database answers.
        LeaseLost: it took so long, or was stopped for so long, that somebody else may be doing it by now.
    """
    lease = _claim(name)
    if lease is None:
        return None
    connection = connections[lease.using]
    mine = verbs.rows_of(connection, Job).filter(pk=name, fence=lease.fence)

    def note(**came_of_it: Any) -> None:
        retrying(connection, lambda: mine.update(**came_of_it))

    with lease:
        began_at = monotonic()
        try:
            result = work(lease)
        except Exception as error:
            try:
                note(failed_at=DbNow(), result=_line(f"{type(error).__name__}: {error}"))
            except TROUBLE as trouble:  # what ``work`` has met matters more
                logger.warning("that the job %r failed was not written down: %s", name, trouble)
            raise
        note(done_at=DbNow(), failed_at=None, seconds=monotonic() - began_at, result=_line(result))
    return result


def _claim(name: str) -> Lease | None:
    using, holder = router.db_for_write(Job), default_holder()
    connection = connections[using]
    terms = Terms(TTL, holder, holder_is_unique=True)
    grant = verbs.claim(connection, Job, name, terms)
    if grant is None and retrying(connection, lambda: _create(using, name)):
        grant = verbs.claim(connection, Job, name, terms)
    return None if grant is None else Lease(Job, using, grant, terms)


def _create(using: str, name: str) -> bool:
    """Add the row if it is not there; tells whether this was so."""
    if Job.objects.using(using).filter(pk=name).exists():
        return False
    try:
        with transaction.atomic(using=using):
            Job.objects.using(using).create(pk=name)
    except IntegrityError:
        return True  # somebody else just did
    return True


def _line(text: str) -> str:
    """Return ``text`` as one line for the row: of a list that is too long the items that fit, and how many do not."""
    plain = " ".join(text.split())
    items = plain.split("; ")
    for kept in range(min(len(items), MAX_RESULT), 0, -1):
        left_out = len(items) - kept
        line = "; ".join([*items[:kept], *([f"and {left_out} more"] if left_out else [])])
        if len(line) <= MAX_RESULT:
            return line
    return f"{plain[: MAX_RESULT - 3]}..."
