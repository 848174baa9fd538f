"""What a task of a stream, a task of a dispenser and a timer have in common: a unit of work that ends."""

from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from resourcepool.dialect import DbNow
from resourcepool.events import SentenceField, say

MAX_OUTCOME = 2_000


class WorkQuerySet(models.QuerySet[Any]):
    """Filters over units of work, and what an operator does to them."""

    def unfinished(self) -> Self:
        """Those that are not over."""
        return self.filter(finished_at=None)

    def failed(self) -> Self:
        """Those that do not run unless somebody retries them."""
        return self.filter(state__in=self.model.failed_states)

    def discardable(self) -> Self:
        """Those that are not running, and neither done nor discarded."""
        return self.filter(state__in=self.model.discardable_states)

    def retry(self, actor: str = "", reason: str = "") -> int:
        """Make failed ones ready again, each in its old place, as if they had not failed; returns how many."""
        ready = {"state": self.model.ready_state, **self.model.as_if_not_failed, **self.model.nobodys()}
        return self.failed().update(fence=F("fence") + 1, finished_at=None, **ready)

    def discard(self, actor: str = "", reason: str = "") -> int:
        """Finish them without running them; returns how many. Running ones are left alone."""
        return self.discardable().update(
            state="discarded",
            fence=F("fence") + 1,
            finished_at=DbNow(),
            outcome=say("discarded", name=actor or "?", why=reason or "?"),
            **self.model.nobodys(),
        )


class AbstractWork(models.Model):
    """Columns of a unit of work. Its ``fence`` goes up with every attempt, and with everything done to it."""

    ready_state: ClassVar[str]
    failed_states: ClassVar[tuple[str, ...]]
    discardable_states: ClassVar[tuple[str, ...]]
    as_if_not_failed: ClassVar[dict[str, Any]] = {}  # columns that count what went wrong

    finished_at = models.DateTimeField(_("finished at"), null=True, editable=False)
    outcome = SentenceField(
        _("outcome"),
        max_length=MAX_OUTCOME,
        default="",
        editable=False,
        help_text=_("Its result as JSON, its progress, or its error."),
    )

    class Meta:
        abstract = True

    @classmethod
    def nobodys(cls) -> dict[str, Any]:
        """Return what to write so that nobody has it."""
        return {}
