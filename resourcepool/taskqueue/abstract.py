"""What a task of a stream, a task of a dispenser and a timer have in common: a unit of work that ends.

The history is told what operators do, and what is given up (docs/history.md); not what ends well or is tried again by
itself: there is too much of it.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from django.apps import apps
from django.db import IntegrityError, connections, models, transaction
from django.db.models import F, Value
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow
from resourcepool.events import Sentence, SentenceField, say
from resourcepool.signals import Fact, What, tell

MAX_OUTCOME = 2_000
NAMED = 5  # of those that there are, in an error
CHUNK = 1_000  # rows in a statement
# Of the column that says where work belongs: a constraint would have each insertion lock the row it refers to, such as
# a stream's, which its leader writes; the index is the first part of another one.
BARE_KEY: dict[str, Any] = {"db_index": False, "db_constraint": False}


class _NotAll(Exception):
    """Some rows had changed meanwhile."""


def counted(tasks: int) -> str:
    """Return "1 task" or "7 tasks", for a log."""
    return f"{tasks} task" if tasks == 1 else f"{tasks} tasks"


def about(name: str, why: str) -> str:
    """Return the reason of an event of a unit of work: which one it is, and ``why``."""
    return say("about", name=name, why=why) if why else name


def changed(rows: Any, what: What, actor: str, why: str, /, **changes: Any) -> int:
    """Make ``changes`` to these rows, which no longer match then, and tell of each; returns how many."""
    rows._for_write = True
    using = rows.db
    if not what.is_heard(rows.model):
        return int(rows.update(**changes))
    fence = F("fence") if hasattr(rows.model, "fence") else Value(0)
    columns = ("pk", fence, *getattr(rows.model, "named_by", ()))
    found = {row[0]: row[1:] for row in rows.using(using).values_list(*columns)}
    pks, done = list(found), 0
    with transaction.atomic(using=using):
        for start in range(0, len(pks), CHUNK):
            for pk in _changed(rows.using(using), pks[start : start + CHUNK], changes):
                at, *named = found[pk]
                reason = about("/".join(named), why) if named else why
                tell(Fact(what, rows.model, using, pk, at, reason=reason, actor=actor))
                done += 1
    return done


def _changed(rows: Any, pks: Sequence[Any], changes: dict[str, Any]) -> list[Any]:
    """Change those of the rows with these keys that still match; return their keys."""
    try:
        with transaction.atomic(using=rows.db):
            if rows.filter(pk__in=pks).update(**changes) != len(pks):
                raise _NotAll  # noqa: TRY301 (it rolls the block back)
    except _NotAll:  # somebody was faster with some of them: one by one it is known with which
        return [pk for pk in pks if rows.filter(pk=pk).update(**changes)]
    return list(pks)


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

    def insert(self, using: str) -> bool:
        """Insert this new row; False: there is one of this name already."""
        try:
            with transaction.atomic(using=using):
                self.save(force_insert=True, using=using)
        except IntegrityError:
            rows = type(self).objects.using(using)  # type: ignore[attr-defined]  # of each concrete model
            if not rows.called(*(getattr(self, name) for name in self.named_by)).exists():
                raise
            return False
        return True

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
