"""A unit of work: what tasks of streams, tasks of dispensers and timers have in common.

The history records what operators do and what is given up (docs/history.md). Success and automatic retries are too
many to record.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from django.apps import apps
from django.db import IntegrityError, connections, models, transaction
from django.db.models import F, Value
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from resourcepool import dialect
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow
from resourcepool.events import Sentence, SentenceField, sentence_for
from resourcepool.signals import EventKind, RowEvent, emit

MAX_OUTCOME = 2_000
MAX_NAMES = 5  # existing names in an error
CHUNK = 1_000  # rows in a statement
# Of the column that says where work belongs: a constraint would have each insertion lock the row it refers to, such as
# a stream's, which its leader writes; the index is the first part of another one.
BARE_KEY: dict[str, Any] = {"db_index": False, "db_constraint": False}


def tasks_text(tasks: int) -> str:
    """Return "1 task" or "7 tasks", for a log."""
    return f"{tasks} task" if tasks == 1 else f"{tasks} tasks"


def event_reason(name: str, why: str) -> str:
    """Return the reason of an event: which unit of work it is about, and ``why``."""
    return sentence_for("about", name=name, why=why) if why else name


def update_and_record(rows: Any, what: EventKind, actor: str, why: str, /, **changes: Any) -> int:
    """Update these rows, which must no longer match afterwards, and record an event for each; return how many."""
    rows._for_write = True
    using = rows.db
    if not what.has_listeners(rows.model):
        return int(rows.update(**changes))
    fence = F("fence") if hasattr(rows.model, "fence") else Value(0)
    columns = ("pk", fence, *getattr(rows.model, "named_by", ()))
    found = {row[0]: row[1:] for row in rows.using(using).values_list(*columns)}
    pks, done = list(found), 0
    with transaction.atomic(using=using):
        for start in range(0, len(pks), CHUNK):
            for pk in _changed(rows.using(using), pks[start : start + CHUNK], changes):
                at, *named = found[pk]
                reason = event_reason("/".join(named), why) if named else why
                emit(RowEvent(what, rows.model, using, pk, at, reason=reason, actor=actor))
                done += 1
    return done


def _changed(rows: Any, pks: Sequence[Any], changes: dict[str, Any]) -> list[Any]:
    """Update the rows with these keys that still match; return their keys."""
    with transaction.atomic(using=rows.db):
        if rows.filter(pk__in=pks).update(**changes) == len(pks):
            return list(pks)
        transaction.set_rollback(True, using=rows.db)
    # Others have changed some of them: one by one, to know which.
    return [pk for pk in pks if rows.filter(pk=pk).update(**changes)]


class PausableQuerySet(models.QuerySet[Any]):
    """Pausing of streams, dispensers and topics."""

    def paused(self) -> Self:
        return self.filter(is_paused=True)

    def pause(self, actor: str = "") -> int:
        """Stop beginning their work, within 3 s; return how many were not paused before."""
        return update_and_record(self.filter(is_paused=False), EventKind.PAUSED, actor, "", is_paused=True)

    def resume(self, actor: str = "") -> int:
        """End a pause; return how many were paused."""
        return update_and_record(self.paused(), EventKind.RESUMED, actor, "", is_paused=False)


class WorkQuerySet(models.QuerySet[Any]):
    """Filters over units of work, and what an operator does to them."""

    def named(self, place: str, name: str) -> Self:
        """The one of this name in this stream, dispenser or topic."""
        return self.filter(**dict(zip(self.model.named_by, (place, name), strict=True)))

    def unfinished(self) -> Self:
        return self.filter(finished_at=None)

    def failed(self) -> Self:
        """Work that does not run again unless an operator retries it."""
        return self.filter(state__in=self.model.failed_states)

    def discardable(self) -> Self:
        """Work that is not running, done or discarded."""
        return self.filter(state__in=self.model.discardable_states)

    def retry(self, actor: str = "", reason: str = "") -> int:
        """Make failed work ready again, in its old place, with its counts at 0; return how much."""
        return update_and_record(
            *(self.failed(), EventKind.RETRIED, actor, reason),
            state=self.model.ready_state,
            fence=F("fence") + 1,
            finished_at=None,
            outcome="",
            **self.model.reset_counts,
            **self.model.unassigned_values(),
        )

    def discard(self, actor: str = "", reason: str = "") -> int:
        """Finish work without running it, except what is running; return how much."""
        return update_and_record(
            *(self.discardable(), EventKind.DISCARDED, actor, reason),
            state="discarded",
            fence=F("fence") + 1,
            finished_at=DbNow(),
            outcome=sentence_for("discarded", name=actor or "?", why=reason or "?"),
            **self.model.unassigned_values(),
        )


class AbstractWork(models.Model):
    """Columns of a unit of work. Its ``fence`` goes up with every attempt, and with everything done to it."""

    records_operations: ClassVar[bool] = True
    named_by: ClassVar[
        tuple[str, str]
    ]  # the columns of its place (stream, dispenser, topic) and of its name there
    ready_state: ClassVar[str]
    failed_states: ClassVar[tuple[str, ...]]
    discardable_states: ClassVar[tuple[str, ...]]
    reset_counts: ClassVar[dict[str, Any]] = {}  # columns that count what went wrong

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
        """Insert this new row; False: there is one of this name already, which no earlier try to insert it has made."""
        # A try whose commit failed has set it, and another row may have it by now.
        tried, self.pk = self.pk, None
        try:
            with transaction.atomic(using=using):
                self.save(force_insert=True, using=using)
        except IntegrityError as error:
            rows = type(self).objects.using(using)  # type: ignore[attr-defined]  # of each concrete model
            mine = rows.named(*(getattr(self, name) for name in self.named_by))
            (named,) = self._meta.constraints
            if (found := mine.values_list("pk", flat=True).first()) is not None:
                self.pk = found
                return bool(found == tried)
            # One that was committed after a transaction's snapshot was made is not seen in it.
            if not dialect.violates(connections[using], error, named.name):
                raise
            return False
        except BaseException:
            self.pk = self.pk or tried  # of a commit whose reply may be lost
            raise
        return True

    @classmethod
    def unassigned_values(cls) -> dict[str, Any]:
        """Return the column values of work without a holder."""
        return {}


def recorded_models() -> list[Any]:
    """Return the models, besides elections, whose operator actions and failures the history records."""
    return [model for model in apps.get_models() if getattr(model, "records_operations", False)]


def work_models() -> list[Any]:
    return [model for model in recorded_models() if issubclass(model, AbstractWork)]


def existing_names(model: Any, using: str) -> Sentence:
    """Return the end of an error about an unknown stream, dispenser or topic: some names that exist."""
    rows = model.objects.using(using).order_by("pk").values_list("pk", flat=True)[: MAX_NAMES + 1]
    names = retrying(connections[using], lambda: list(rows))
    if not names:
        return Sentence(model.none_yet)
    some = ", ".join(names[:MAX_NAMES]) + (" .." if len(names) > MAX_NAMES else "")
    return Sentence(gettext_noop("one of %(names)s"), names=some)
