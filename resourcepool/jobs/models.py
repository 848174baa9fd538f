"""One leased row for each kind of periodic work."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from resourcepool.dialect import KeyField
from resourcepool.leases.models import AbstractLease

MAX_RESULT = 200


class Job(AbstractLease):
    """A kind of periodic work, leased by whoever does it, so that it is safe to start it twice at once.

    Correctness never depends on any of them (invariant 4).
    """

    is_told = False

    name = KeyField(_("name"), max_length=200, primary_key=True)
    done_at = models.DateTimeField(_("done at"), null=True, editable=False)
    seconds = models.FloatField(_("took"), null=True, editable=False)
    result = models.CharField(_("result"), max_length=MAX_RESULT, default="", editable=False)
    memory = models.TextField(default="", editable=False, help_text=_("What it has to know next time."))
    failed_at = models.DateTimeField(_("failed at"), null=True, editable=False)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")

    def __str__(self) -> str:
        return str(self.name)
