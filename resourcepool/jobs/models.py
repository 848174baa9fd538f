"""What came of each kind of periodic work: a row that is an election, too, of whoever does it."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from resourcepool.elections.models import AbstractElection
from resourcepool.events import SentenceField

MAX_RESULT = 2_000  # as it is stored


class Job(AbstractElection):
    """A kind of periodic work, done by whoever is elected for it, so that it is safe to start it twice at once.

    Correctness never depends on any of them (invariant 4).
    """

    done_at = models.DateTimeField(_("done at"), null=True, editable=False)
    seconds = models.FloatField(_("took"), null=True, editable=False)
    result = SentenceField(_("result"), max_length=MAX_RESULT, default="", editable=False)
    memory = models.TextField(default="", editable=False, help_text=_("What it has to know next time."))
    failed_at = models.DateTimeField(_("failed at"), null=True, editable=False)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
