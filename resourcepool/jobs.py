"""Periodic work done by one process at a time: who runs it, when it ran last, and with what result."""

import logging
from collections.abc import Callable
from typing import Any, ClassVar

from django.db import DatabaseError, InterfaceError, connections, models

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.elections.election import Election, Term
from resourcepool.elections.models import AbstractElection
from resourcepool.events import Sentence, sentence_for
from resourcepool.events.field import SentenceField
from resourcepool.exceptions import LeaseLost, ResourcePoolError
from resourcepool.leases import verbs
from resourcepool.text import TextField, ascii_escaped
from resourcepool.translation import gettext_lazy as _, gettext_noop

# Names of the jobs, in their rows and on pages.
SWEEP, PRUNE, STATISTICS = gettext_noop("sweep"), gettext_noop("prune history"), gettext_noop("statistics")
CHECK = "check "  # followed by the label of the checked pool

MAX_RESULT = 2_000  # characters, as it is stored
DATABASE_ERRORS = (DatabaseError, InterfaceError, ResourcePoolError)

logger = logging.getLogger(__name__)


class Job(AbstractElection):
    """A kind of periodic work. One elected process runs it, so starting it twice at once is safe.

    Correctness never depends on a job.
    """

    emits_events: ClassVar[bool] = False  # it runs every minute or so, and its row has the last result

    done_at = models.DateTimeField(_("done at"), null=True, editable=False)
    seconds = models.FloatField(_("duration (s)"), null=True, editable=False)
    result = SentenceField(_("result"), max_length=MAX_RESULT, default="", editable=False)
    memory = TextField(default="", editable=False, help_text=_("State carried to the next run."))
    failed_at = models.DateTimeField(_("failed at"), null=True, editable=False)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")


def run(name: str, work: Callable[[Term], str]) -> str | None:
    """Run ``work`` as the job ``name`` and return its result; None when another process is running it.

    Args:
        work: called with the term; long work calls ``term.ensure_held`` now and then. It returns one line.

    Raises:
        DatabaseUnavailable: the database did not answer. Exceptions of ``work`` are recorded and raised, too.
        LeaseLost: the job ran, or was suspended, beyond its lease: another process may be running it.
    """
    term = Election(name, Job).try_now()
    if term is None:
        return None
    connection = connections[term.using]
    row = verbs.rows_of(connection, Job).filter(pk=name, fence=term.fence)

    def write(**columns: Any) -> None:
        retrying(connection, lambda: row.update(**columns))

    def record(result: str, **columns: Any) -> None:
        try:
            write(result=result, **columns)
        except Exception as error:
            if not dialect.refuses_text(connection, error):
                raise
            write(result=ascii_escaped(result), **columns)

    with term:
        began_at = monotonic()
        try:
            result = work(term)
        except Exception as error:
            if isinstance(error, LeaseLost) and not term.is_leader:
                raise  # another process runs it by now
            try:
                record(_failure(error), failed_at=DbNow())
            except DATABASE_ERRORS as not_recorded:  # the exception of ``work`` matters more
                logger.warning("the failure of job %r was not recorded: %s", name, not_recorded)
            raise
        record(result, done_at=DbNow(), failed_at=None, seconds=monotonic() - began_at)
    return result


def _failure(error: Exception) -> str:
    why = str(error)
    return sentence_for(
        "about", name=type(error).__name__, why=why if isinstance(why, Sentence) else " ".join(why.split())
    )
