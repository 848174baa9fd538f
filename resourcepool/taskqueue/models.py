"""Streams and their tasks."""

from typing import Any, ClassVar, Self

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import OuterRef, Q, Subquery

from resourcepool.db.dialect import DbNow, KeyField, NullInOrder
from resourcepool.db.dialect.fields import seconds, whole
from resourcepool.elections.models import AbstractElection
from resourcepool.leases.models import AbstractLease, LeaseQuerySet
from resourcepool.options import DAY
from resourcepool.taskqueue import abstract
from resourcepool.taskqueue.abstract import (
    BARE_KEY,
    AbstractWork,
    AttemptSettings,
    PausableQuerySet,
    WorkQuerySet,
)
from resourcepool.text import CharField, TextField
from resourcepool.translation import gettext_lazy as _, gettext_noop

MAX_KEY = 200
MAX_TYPE = 100
MAX_LANES = 64
GIVEN_UP = {"block": "blocked", "skip": "skipped", "dead-letter": "dead"}
SETTINGS = (
    *("on_failure", "retries", "retry_delay", "max_crashes", "lanes"),
    *("term_ttl", "lock_delay", "done_kept"),
)


class StreamQuerySet(LeaseQuerySet, PausableQuerySet):  # type: ignore[override]  # as_manager of both
    def blocked(self) -> Self:
        """Streams whose first unfinished task is blocked."""
        return self.annotate(first_state=self._first("state")).filter(first_state=Task.State.BLOCKED)

    def without_consumer(self) -> Self:
        """Streams with unfinished tasks and without a leader."""
        return self.busy().filter(Q(holder="") | Q(busy_before__lte=DbNow()))

    def busy(self) -> Self:
        return self.annotate(first_task=self._first("pk")).filter(first_task__isnull=False)

    def _first(self, column: str) -> Subquery:
        tasks = Task.objects.unfinished_in_order().filter(stream_id=OuterRef("pk"))
        return Subquery(tasks.values(column)[:1])


class Stream(AttemptSettings, AbstractElection):
    """An ordered list of tasks that one consumer at a time runs. The row is also the election of that consumer."""

    none_yet = gettext_noop("an existing stream; `manage.py resourcepool_streams add NAME` adds one")

    class OnFailure(models.TextChoices):
        BLOCK = "block", _("block: later tasks wait until an operator retries or discards it")
        SKIP = "skip", _("skip: the task is given up and the next one runs")
        DEAD_LETTER = "dead-letter", _("dead-letter: the task is kept for an operator and the next one runs")

    on_failure = CharField(
        _("on failure"),
        max_length=20,
        choices=OnFailure.choices,
        default=OnFailure.BLOCK,
        help_text=_("What happens to a task that has failed after all its retries."),
    )
    retries = abstract.retries_field(3, _("How many times a failed task is retried."))
    retry_delay = abstract.retry_delay_field(_("Time before each retry; later tasks of the lane wait, too."))
    max_crashes = abstract.max_crashes_field(
        _("A task fails for good once its process has crashed this many times.")
    )
    lanes = whole(
        _("lanes"),
        1,
        _("How many tasks run at a time; with several lanes, order is kept only within a lane."),
        1,
        MAX_LANES,
    )
    term_ttl = seconds(
        _("ttl of a term (s)"), 15.0, _("How long after a consumer crashes another one takes the lead."), 1.0
    )
    lock_delay = seconds(
        _("lock-delay (s)"),
        0.0,
        _("Extra time before a new leader begins, unless the last one resigned."),
    )
    done_kept = abstract.done_kept_field(
        _("finished tasks kept (s)"),
        7 * DAY,
        _("How long finished tasks and their keys are kept, except dead letters; 0: deleted once done."),
    )
    is_paused = abstract.is_paused_field(help_text=_("No new tasks are started."))
    address = models.PositiveIntegerField(
        default=0, editable=False, help_text=_("Address of the consumer's process, for hints.")
    )

    objects: ClassVar[Any] = StreamQuerySet.as_manager()

    waiting_state = "ready"
    written_by_leaders = AbstractElection.written_by_leaders | {"address"}

    class Meta:
        verbose_name = _("stream")
        verbose_name_plural = _("streams")
        default_permissions = ("add", "change", "delete", "view", "operate", "submit")

    @property
    def given_up_state(self) -> str:
        return GIVEN_UP[self.on_failure]

    def crashes_left(self, crashes: int) -> int:
        # A task of another lane may have caused the first crash. Any later crash is its own: it ran alone.
        return 0 if self.lanes > 1 and crashes == 1 else crashes

    def wrong_settings(self) -> str:
        """Return the invalid settings, which only ``update`` or SQL can write; "": none."""
        try:
            self.clean_fields(exclude={field.name for field in self._meta.fields}.difference(SETTINGS))
        except ValidationError as error:
            texts = error.message_dict.items()
            return "; ".join(f"{name}={getattr(self, name)!r}: {' '.join(errors)}" for name, errors in texts)
        return ""


class TaskQuerySet(LeaseQuerySet, WorkQuerySet):  # type: ignore[override]  # as_manager of both
    def in_order(self) -> Self:
        return self.order_by("task_time", "pk")

    def unfinished_in_order(self) -> Self:
        """Unfinished tasks in the order in which they run."""
        return self.unfinished().order_by(NullInOrder("finished_at"), "task_time", "pk")


class Task(AbstractLease, AbstractWork):
    """A task of a stream: data, never code. Every attempt has its own fence."""

    class State(models.TextChoices):
        READY = "ready", _("ready")
        RUNNING = "running", _("running")
        BLOCKED = "blocked", _("blocked")
        DONE = "done", _("done")
        SKIPPED = "skipped", _("skipped")
        DEAD = "dead", _("dead-letter")
        DISCARDED = "discarded", _("discarded")

    key_columns = ("stream_id", "key")
    ready_state = State.READY
    failed_states = (State.BLOCKED, State.SKIPPED, State.DEAD, State.DISCARDED)
    discardable_states = (State.READY, State.BLOCKED, State.SKIPPED, State.DEAD)
    reset_counts: ClassVar[dict[str, Any]] = {"failures": 0, "crashes": 0}

    stream = models.ForeignKey(
        Stream, models.PROTECT, related_name="tasks", verbose_name=_("stream"), **BARE_KEY
    )
    key = KeyField(_("key"), max_length=MAX_KEY)
    type = KeyField(_("type"), max_length=MAX_TYPE)
    params = TextField(_("parameters"), default="{}", help_text=_("A JSON object."))
    lane = KeyField(_("lane"), max_length=MAX_KEY, default="", blank=True)
    task_time = models.DateTimeField(_("task time"), default=DbNow)
    submitted_at = models.DateTimeField(_("submitted at"), default=DbNow, editable=False)
    state = CharField(_("state"), max_length=10, choices=State.choices, default=State.READY, editable=False)
    attempts = models.PositiveIntegerField(_("attempts"), default=0, editable=False)
    failures = models.PositiveIntegerField(_("failures"), default=0, editable=False)
    crashes = models.PositiveIntegerField(_("process crashes"), default=0, editable=False)
    term = models.BigIntegerField(
        _("term"), default=0, editable=False, help_text=_("The term of the last run.")
    )
    started_at = models.DateTimeField(_("started at"), null=True, editable=False)

    objects: ClassVar[Any] = TaskQuerySet.as_manager()

    class Meta:
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        default_permissions = ("view", "operate")
        constraints = [models.UniqueConstraint(fields=["stream", "key"], name="resourcepool_task_key")]
        indexes = [
            models.Index(fields=["stream", "finished_at", "task_time", "id"], name="resourcepool_task_in_order")
        ]

    @classmethod
    def unassigned_values(cls) -> dict[str, Any]:
        return {"busy_before": DbNow()}
