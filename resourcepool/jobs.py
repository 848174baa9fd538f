"""Periodic work that one process does at a time: who does it, when it was done last, and what came of it."""

import logging
from collections.abc import Callable
from typing import Any, ClassVar

from django.db import DatabaseError, InterfaceError, connections, models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from resourcepool import dialect
from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow
from resourcepool.elections.election import Election
from resourcepool.elections.models import AbstractElection
from resourcepool.elections.term import Term
from resourcepool.events import Sentence, SentenceField, sentence_for
from resourcepool.exceptions import LeaseLost, ResourcePoolError
from resourcepool.leases import verbs
from resourcepool.text import TextField, ascii_escaped

# What the jobs are called, in their rows and wherever they are shown.
SWEEP, PRUNE, STATISTICS = gettext_noop("sweep"), gettext_noop("prune history"), gettext_noop("statistics")
CHECK = "check "  # and the label of the pool that is checked

MAX_RESULT = 2_000  # characters, as it is stored
TROUBLE = (DatabaseError, InterfaceError, ResourcePoolError)

logger = logging.getLogger(__name__)


class Job(AbstractElection):
    """A kind of periodic work, done by one elected process, so that it is safe to start it twice at once.

    Correctness never depends on any of them (invariant 4).
    """

    emits_events: ClassVar[bool] = (
        False  # each is done every minute or so; its row says when, and what came of it
    )

    done_at = models.DateTimeField(_("done at"), null=True, editable=False)
    seconds = models.FloatField(_("took"), null=True, editable=False)
    result = SentenceField(_("result"), max_length=MAX_RESULT, default="", editable=False)
    memory = TextField(default="", editable=False, help_text=_("What it has to know next time."))
    failed_at = models.DateTimeField(_("failed at"), null=True, editable=False)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")


def run(name: str, work: Callable[[Term], str]) -> str | None:
    """Do ``work`` as the job ``name``, and return what it says was done; None when it is being done elsewhere.

    Args:
        work: is given the term: long work looks now and then (``ensure_held``), and returns one line.

    Raises:
        DatabaseUnavailable: and whatever ``work`` raises; that is noted, too, if the database answers.
        LeaseLost: it took, or was stopped for, so long that another process may be doing it by now.
    """
    term = Election(name, Job).try_now()
    if term is None:
        return None
    connection = connections[term.using]
    mine = verbs.rows_of(connection, Job).filter(pk=name, fence=term.fence)

    def write(**came_of_it: Any) -> None:
        retrying(connection, lambda: mine.update(**came_of_it))

    def note(result: str, **came_of_it: Any) -> None:
        try:
            write(result=result, **came_of_it)
        except Exception as error:
            if not dialect.refuses_text(connection, error):
                raise
            write(result=ascii_escaped(result), **came_of_it)

    with term:
        began_at = monotonic()
        try:
            result = work(term)
        except Exception as error:
            if isinstance(error, LeaseLost) and not term.is_leader:
                raise  # another process does it by now; what this one has done stands
            try:
                note(_failure(error), failed_at=DbNow())
            except TROUBLE as trouble:  # what ``work`` has met matters more
                logger.warning("that the job %r failed was not written down: %s", name, trouble)
            raise
        note(result, done_at=DbNow(), failed_at=None, seconds=monotonic() - began_at)
    return result


def _failure(error: Exception) -> str:
    """Return what the row says of ``error``: its kind and, in one line, its text."""
    why = str(error)
    return sentence_for(
        "about", name=type(error).__name__, why=why if isinstance(why, Sentence) else " ".join(why.split())
    )
