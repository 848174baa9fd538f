"""What a task of a stream, a task of a dispenser and a timer have in common: a unit of work that ends."""

from typing import Any, ClassVar, Self

from django.apps import apps
from django.db import connections, models
from django.db.models import F
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow
from resourcepool.events import Sentence, SentenceField, say
from resourcepool.signals import What
from resourcepool.taskqueue.telling import changed

MAX_OUTCOME = 2_000
NAMED = 5  # of those that there are, in an error


class PausableQuerySet(models.QuerySet[Any]):
    """What an operator does to streams, dispensers and topics."""

    def paused(self) -> Self:
        """Those of which nothing begins until somebody resumes them."""
        return self.filter(is_paused=True)

    def pause(self, actor: str = "") -> int:
        """Have no more of their work begun, within 3 s; returns how many were not paused."""
        return changed(self.filter(is_paused=False), What.PAUSED, actor, "", is_paused=True)

    def resume(self, actor: str = "") -> int:
        """End a pause; returns how many were paused."""
        return changed(self.paused(), What.RESUMED, actor, "", is_paused=False)


class WorkQuerySet(models.QuerySet[Any]):
    """Filters over units of work, and what an operator does to them."""

    def called(self, place: str, name: str) -> Self:
        """The one of this name in this stream, dispenser or topic."""
        return self.filter(**dict(zip(self.model.named_by, (place, name), strict=True)))

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
        return changed(
            *(self.failed(), What.RETRIED, actor, reason),
            state=self.model.ready_state,
            fence=F("fence") + 1,
            finished_at=None,
            outcome="",
            **self.model.as_if_not_failed,
            **self.model.nobodys(),
        )

    def discard(self, actor: str = "", reason: str = "") -> int:
        """Finish them without running them; returns how many. Running ones are left alone."""
        return changed(
            *(self.discardable(), What.DISCARDED, actor, reason),
            state="discarded",
            fence=F("fence") + 1,
            finished_at=DbNow(),
            outcome=say("discarded", name=actor or "?", why=reason or "?"),
            **self.model.nobodys(),
        )


class AbstractWork(models.Model):
    """Columns of a unit of work. Its ``fence`` goes up with every attempt, and with everything done to it."""

    acts_are_told: ClassVar[bool] = True
    named_by: ClassVar[tuple[str, str]]  # the columns that tell where it belongs, and which one it is there
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

    def __str__(self) -> str:
        return "/".join(str(getattr(self, name)) for name in self.named_by)

    @classmethod
    def nobodys(cls) -> dict[str, Any]:
        """Return what to write so that nobody has it."""
        return {}


def operated_models() -> list[Any]:
    """Return the models, besides elections, of which the history tells what operators do and what is given up."""
    return [model for model in apps.get_models() if getattr(model, "acts_are_told", False)]


def work_models() -> list[Any]:
    """Return the models of units of work."""
    return [model for model in operated_models() if issubclass(model, AbstractWork)]


def names_of(model: Any, using: str) -> Sentence:
    """Return what to say to somebody who has named a stream, a dispenser or a topic that does not exist."""
    rows = model.objects.using(using).order_by("pk").values_list("pk", flat=True)[: NAMED + 1]
    names = retrying(connections[using], lambda: list(rows))
    if not names:
        return Sentence(model.none_yet)
    some = ", ".join(names[:NAMED]) + (" .." if len(names) > NAMED else "")
    return Sentence(gettext_noop("one of %(names)s"), names=some)
