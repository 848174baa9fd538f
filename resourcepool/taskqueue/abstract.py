"""Base models of work: tasks of streams, tasks of dispensers, and timers.

The history records operator actions and final failures (docs/reference/events.md), but neither successes nor automatic
retries: these are too many.
"""

from functools import partial
from typing import Any, ClassVar, Self

from django.apps import apps
from django.db import IntegrityError, connections, models, transaction
from django.db.models import F, Value

from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow
from resourcepool.db.dialect.fields import seconds, whole
from resourcepool.db.dialect.statement import Where
from resourcepool.db.retry import retrying
from resourcepool.db.rows import batched, for_update
from resourcepool.events import Sentence, sentence_for
from resourcepool.events.field import SentenceField
from resourcepool.options import DAY
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.translation import gettext_lazy as _, gettext_noop

MAX_OUTCOME = 2_000
MAX_RETRIES = 1_000
MAX_NAMES = 5  # in an error
CHUNK = 1_000  # rows in a statement
UNFINISHED = Where(" AND finished_at IS NULL")
# With a constraint each insertion would lock the row it refers to, such as the stream, which its leader writes. Another
# index begins with this column already.
BARE_KEY: dict[str, Any] = {"db_index": False, "db_constraint": False}


def event_reason(name: str, why: str) -> str:
    """Return the reason of an event: the name of the task or timer, and ``why``."""
    return sentence_for("about", name=name, why=why) if why else name


def update_and_record(rows: Any, what: EventKind, actor: str, why: str, /, **changes: Any) -> int:
    """Update rows and record an event for each; return their number."""
    rows._for_write = True
    using, model = rows.db, rows.model
    if not what.has_listeners(model):
        return int(rows.update(**changes))
    fences = F("fence") if hasattr(model, "fence") else Value(0)
    columns = ("pk", fences, *getattr(model, "key_columns", ()))
    with transaction.atomic(using=using):
        by_pk = {row[0]: row[1:] for row in for_update(rows.using(using)).values_list(*columns)}
        for pks in batched(by_pk, CHUNK):
            model.objects.using(using).filter(pk__in=pks).update(**changes)
            for pk in pks:
                fence, *names = by_pk[pk]
                reason = event_reason("/".join(names), why) if names else why
                emit(RowEvent(what, model, using, pk, fence, reason=reason, actor=actor))
    return len(by_pk)


class PausableQuerySet(models.QuerySet[Any]):
    """Pausing of streams, dispensers and topics."""

    def paused(self) -> Self:
        return self.filter(is_paused=True)

    def pause(self, actor: str = "") -> int:
        """Start no new work of these, within 3 s; return how many were paused by this call."""
        return update_and_record(self.filter(is_paused=False), EventKind.PAUSED, actor, "", is_paused=True)

    def resume(self, actor: str = "") -> int:
        """End the pause; return how many were paused."""
        return update_and_record(self.paused(), EventKind.RESUMED, actor, "", is_paused=False)


# The settings that several places have; their defaults and help texts differ.
retries_field = partial(whole, _("retries"), least=0, most=MAX_RETRIES)
retry_delay_field = partial(seconds, _("retry delay (s)"), 10.0)
max_crashes_field = partial(whole, _("maximum crashes"), 3, least=1, most=100)
done_kept_field = partial(seconds, most=3_650 * DAY)
is_paused_field = partial(models.BooleanField, _("paused"), default=False)


class AbstractPlace(models.Model):
    """A dispenser or a topic: a named row that is created on first use."""

    records_operations: ClassVar[bool] = True

    objects: ClassVar[Any] = PausableQuerySet.as_manager()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.pk)


class AttemptSettings:
    """The settings of a stream or a topic for attempts that end; see their fields. Times in seconds."""

    retries: Any
    retry_delay: Any
    max_crashes: Any
    done_kept: Any
    waiting_state: ClassVar[str]  # of a task or timer that is tried again
    given_up_state: Any  # of one that is not

    def delay(self, failures: int) -> float:
        """Return the time before the next attempt after this many failures."""
        return float(self.retry_delay)

    def crashes_left(self, crashes: int) -> int:
        """Return the crash count that is kept after an attempt without a crash."""
        return crashes


class WorkQuerySet(models.QuerySet[Any]):
    """Filters and operator actions for tasks and timers."""

    def named(self, place: str, name: str) -> Self:
        """The task or timer of this name in this stream, dispenser or topic."""
        return self.filter(**dict(zip(self.model.key_columns, (place, name), strict=True)))

    def unfinished(self) -> Self:
        return self.filter(finished_at=None)

    def failed(self) -> Self:
        """Work that does not run again unless an operator retries it."""
        return self.filter(state__in=self.model.failed_states)

    def discardable(self) -> Self:
        """Work that is not running, done or discarded."""
        return self.filter(state__in=self.model.discardable_states)

    def retry(self, actor: str = "", reason: str = "") -> int:
        """Make failed work ready again, in its old place, with its failure counts reset; return the count."""
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
        """Mark waiting and failed work as discarded; return the count. Running work is skipped."""
        return update_and_record(
            *(self.discardable(), EventKind.DISCARDED, actor, reason),
            state="discarded",
            fence=F("fence") + 1,
            finished_at=DbNow(),
            outcome=sentence_for("discarded", name=actor or "?", why=reason or "?"),
            **self.model.unassigned_values(),
        )


class AbstractWork(models.Model):
    """Columns of a task or timer. Its ``fence`` increases with every attempt and every change."""

    records_operations: ClassVar[bool] = True
    key_columns: ClassVar[tuple[str, str]]  # its stream, dispenser or topic, and its name there: two columns
    ready_state: ClassVar[str]
    failed_states: ClassVar[tuple[str, ...]]
    discardable_states: ClassVar[tuple[str, ...]]
    reset_counts: ClassVar[dict[str, Any]] = {}  # failure counters, at 0

    finished_at = models.DateTimeField(_("finished at"), null=True, editable=False)
    outcome = SentenceField(
        _("outcome"),
        max_length=MAX_OUTCOME,
        default="",
        editable=False,
        help_text=_("The result as JSON, the progress, or the error."),
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return "/".join(str(getattr(self, name)) for name in self.key_columns)

    def insert(self, using: str) -> bool:
        """Insert this row; False: another row has its name. A repeated call recognizes the row of an earlier try."""
        # An earlier try, whose commit failed, has set the key; another row may have it by now.
        tried, self.pk = self.pk, None
        try:
            with transaction.atomic(using=using):
                self.save(force_insert=True, using=using)
        except IntegrityError as error:
            rows = type(self).objects.using(using)  # type: ignore[attr-defined]  # of each concrete model
            same_name = rows.named(*(getattr(self, name) for name in self.key_columns))
            (constraint,) = self._meta.constraints
            if (existing := same_name.values_list("pk", flat=True).first()) is not None:
                self.pk = existing
                return bool(existing == tried)
            # The snapshot of this transaction may be older than the other row.
            if not dialect.of(connections[using]).violates(error, constraint.name):
                raise
            return False
        except BaseException:
            self.pk = self.pk or tried  # the commit may have succeeded
            raise
        return True

    @classmethod
    def leaves_a_row(cls, using: str, place: str, name: str) -> bool:
        """Whether it leaves a row once finished, so that a repeated call can tell if an earlier one succeeded."""
        places: Any = cls._meta.get_field(cls.key_columns[0]).related_model
        rows = cls.objects.using(using).named(place, name)  # type: ignore[attr-defined]  # as in insert
        keeping = places.objects.using(using).filter(pk=place, done_kept__gt=0)
        return any(each.exists() for each in (rows, keeping))

    @classmethod
    def unassigned_values(cls) -> dict[str, Any]:
        """Return the column values of work that has no holder."""
        return {}


def recorded_models() -> list[Any]:
    """Return the models whose operator actions and failures the history records, except elections."""
    return [model for model in apps.get_models() if getattr(model, "records_operations", False)]


def work_models() -> list[Any]:
    return [model for model in recorded_models() if issubclass(model, AbstractWork)]


def existing_names(model: Any, using: str) -> Sentence:
    """Return the end of an error about an unknown name: some names that exist."""
    rows = model.objects.using(using).order_by("pk").values_list("pk", flat=True)[: MAX_NAMES + 1]
    names = retrying(connections[using], lambda: list(rows))
    if not names:
        return Sentence(getattr(model, "none_yet", gettext_noop("an existing name; there is none yet")))
    some = ", ".join(names[:MAX_NAMES]) + (" .." if len(names) > MAX_NAMES else "")
    return Sentence(gettext_noop("one of %(names)s"), names=some)
