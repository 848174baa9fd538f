"""Timers, their topics, and the nodes that handle them (document 004: R4.8-R4.9)."""

import datetime
from typing import Any, ClassVar, Self

from django.core.validators import MinLengthValidator
from django.db import connections, models, transaction
from django.db.models import Case, F, Q, When
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from resourcepool.database.columns import seconds, whole
from resourcepool.dialect import DbLater, DbNow, KeyField, in_columns
from resourcepool.events import sentence_for
from resourcepool.labels import check_labels
from resourcepool.leases.models import AbstractLease, LeaseQuerySet
from resourcepool.options import DAY
from resourcepool.signals import EventKind
from resourcepool.taskqueue.abstract import (
    BARE_KEY,
    AbstractWork,
    PausableQuerySet,
    WorkQuerySet,
    update_and_record,
)
from resourcepool.text import CharField, TextField

MAX_NAME = 200
MAX_TOPIC = 100
MAX_SCHEDULE = 300
LATE_AFTER = 60.0  # seconds after which a timer is late, and lets punctual ones go first

# Also a timer whose handler's process has died.
_NOBODYS = Q(state="pending") | Q(busy_before__lte=DbNow())


class Topic(models.Model):
    """A kind of timers: which nodes may handle them, and what happens to failures. Added when first used."""

    records_operations: ClassVar[bool] = True
    none_yet = gettext_noop("a topic; there is none yet: the first timer makes it")

    name = KeyField(_("name"), max_length=MAX_TOPIC, primary_key=True, validators=[MinLengthValidator(1)])
    is_paused = models.BooleanField(_("paused"), default=False, help_text=_("No more timers are begun."))
    requires = models.JSONField(
        _("required labels"),
        default=dict,
        blank=True,
        validators=[check_labels],
        help_text=_('Only nodes with all of these labels handle it, e.g. {"zone": "eu"}.'),
    )
    on_canary = models.BooleanField(
        _("on canary nodes, too"),
        default=False,
        help_text=_('Whether nodes with the label "canary" handle it.'),
    )
    least_version = CharField(
        _("least version"),
        max_length=50,
        default="",
        blank=True,
        help_text=_("Only nodes of this version or a later one handle it, e.g. 2.10; empty: all."),
    )
    ttl = seconds(
        _("ttl (s)"), 30.0, _("When a handler's process has died, the time until its timer fires again."), 1.0
    )
    retries = whole(_("retries"), 0, _("How many times a failed timer is tried again."), 0, 1_000)
    retry_delay = seconds(
        _("retry delay (s)"), 10.0, _("The time before the first retry; twice as long before each further one.")
    )
    max_crashes = whole(
        _("deaths until failed"),
        3,
        _("A timer whose process has died this many times has failed for good."),
        1,
        100,
    )
    done_kept = seconds(
        _("finished timers kept (s)"),
        DAY,
        _("How long finished timers are kept, failed ones excepted; 0: deleted as soon as done."),
        most=3_650 * DAY,
    )

    objects: ClassVar[Any] = PausableQuerySet.as_manager()

    class Meta:
        verbose_name = _("timer topic")
        verbose_name_plural = _("timer topics")
        default_permissions = ("change", "delete", "view", "operate")

    def __str__(self) -> str:
        return str(self.name)


class TimerQuerySet(LeaseQuerySet, WorkQuerySet):  # type: ignore[override]  # as_manager of both
    def in_order(self) -> Self:
        """By the moment at which they fire; finished ones apart."""
        return self.order_by("finished_at", "busy_before")

    def pending(self) -> Self:
        """Timers that wait: for their moment, for a node, or for a retry."""
        return self.filter(state=Timer.State.PENDING, finished_at=None)

    def due(self) -> Self:
        """Timers that a node may begin now, including timers whose handler's process has died."""
        return self.unfinished().filter(busy_before__lte=DbNow())

    def late(self) -> Self:
        """Timers that should have begun a minute ago."""
        return self.unfinished().filter(busy_before__lt=DbLater(-LATE_AFTER))

    def handed(self) -> Self:
        """Timers that were handed over to another process and not taken yet."""
        return self.pending().exclude(holder="")

    def waiting(self) -> Self:
        return self.pending().filter(busy_before__gt=DbNow())

    def cancellable(self) -> Self:
        """Timers that can be kept from firing, or from firing again."""
        return self.unfinished().filter(_NOBODYS | ~Q(schedule=""))

    def fire(self, actor: str = "") -> int:
        """Make waiting timers due at once; return how many."""
        is_ahead = When(due_at__gt=DbNow(), then=DbNow())
        due_at = Case(is_ahead, default=F("due_at"))
        waiting = (self.waiting(), EventKind.FIRED, actor, "")
        return update_and_record(*waiting, due_at=due_at, busy_before=DbNow(), fence=F("fence") + 1)

    def cancel(self, actor: str = "") -> int:
        """Keep timers from firing, and running recurring ones from firing again; return how many."""
        self._for_write = True  # or ``db`` would be a replica
        told = (EventKind.CANCELLED, actor, "")
        running, waiting = self.unfinished().exclude(_NOBODYS), self.unfinished().filter(_NOBODYS)
        with transaction.atomic(using=self.db):
            return update_and_record(running.exclude(schedule=""), *told, schedule="") + update_and_record(
                *(waiting, *told),
                state=Timer.State.CANCELLED,
                fence=F("fence") + 1,
                finished_at=DbNow(),
                outcome=sentence_for("cancelled", name=actor or "?"),
                **Timer.unassigned_values(),
            )


class Timer(AbstractLease, AbstractWork):
    """Something that must happen at a moment: its ``busy_before`` starts in the future, and passes when it is due.

    While its handler runs, ``busy_before`` is the end of the handler's lease: one condition finds due timers and the
    timers of dead processes.
    """

    emits_events: ClassVar[bool] = False

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        DEAD = "dead", _("dead-letter")
        CANCELLED = "cancelled", _("cancelled")
        DISCARDED = "discarded", _("discarded")

    class CatchUp(models.TextChoices):
        ONCE = "once", _("once: those that were missed fire once, together")
        ALL = "all", _("all: each one that was missed fires")
        SKIP = "skip", _("skip: those that were missed do not fire")

    class End(models.TextChoices):
        NONE = "", _("none yet")
        CLEAN = "clean", _("clean")
        EXPIRED = "expired", _("expired")
        RELEASED = "released", _("released")

    named_by = ("topic_id", "name")
    ready_state = State.PENDING
    failed_states = (State.DEAD, State.DISCARDED)
    discardable_states = (State.PENDING, State.DEAD)
    reset_counts: ClassVar[dict[str, Any]] = {"failures": 0, "crashes": 0}

    topic = models.ForeignKey(Topic, models.PROTECT, related_name="timers", verbose_name=_("topic"), **BARE_KEY)
    name = KeyField(_("name"), max_length=MAX_NAME)
    payload = TextField(_("payload"), default="{}", help_text=_("A JSON object."))
    due_at = models.DateTimeField(_("due at"))
    schedule = CharField(
        _("schedule"),
        max_length=MAX_SCHEDULE,
        default="",
        blank=True,
        help_text=_("Of one that fires again and again, as JSON; empty: it fires once."),
    )
    catch_up = CharField(_("catch-up"), max_length=10, choices=CatchUp.choices, default=CatchUp.ONCE)
    state = CharField(_("state"), max_length=10, choices=State.choices, default=State.PENDING, editable=False)
    attempts = models.PositiveIntegerField(_("attempts"), default=0, editable=False)
    failures = models.PositiveIntegerField(_("failures"), default=0, editable=False)
    crashes = models.PositiveIntegerField(_("process deaths"), default=0, editable=False)
    previous_end = CharField(
        _("previous end"),
        max_length=10,
        choices=End.choices,
        default=End.NONE,
        blank=True,
        editable=False,
        help_text=_("How the attempt before this one ended."),
    )
    scheduled_at = models.DateTimeField(_("scheduled at"), default=DbNow, editable=False)
    started_at = models.DateTimeField(_("started at"), null=True, editable=False)

    objects: ClassVar[Any] = TimerQuerySet.as_manager()

    class Meta:
        verbose_name = _("timer")
        verbose_name_plural = _("timers")
        default_permissions = ("view", "operate")
        constraints = [models.UniqueConstraint(fields=["name", "topic"], name="resourcepool_timer_name")]
        indexes = [
            models.Index(fields=["topic", "finished_at", "busy_before"], name="resourcepool_timer_due"),
        ]

    @classmethod
    def unassigned_values(cls) -> dict[str, Any]:
        return {"busy_before": DbNow(), "holder": ""}

    @classmethod
    def restart_values(cls, using: str, due_at: datetime.datetime) -> dict[str, Any]:
        """Return the column values of a timer that waits for this moment and was never tried."""
        counts, moment = {"attempts": 0, "failures": 0, "crashes": 0}, in_columns(due_at, connections[using])
        waits = {"due_at": moment, "busy_before": moment, "holder": "", "finished_at": None, "outcome": ""}
        return {"state": cls.State.PENDING, **waits, **counts, "previous_end": cls.End.NONE}


class TimerNode(AbstractLease):
    """A process that handles timers: alive until ``busy_before``."""

    emits_events: ClassVar[bool] = False

    name = KeyField(_("name"), max_length=MAX_NAME, primary_key=True)
    labels = models.JSONField(_("labels"), default=dict, blank=True, validators=[check_labels])
    version = CharField(_("version"), max_length=50, default="", blank=True)
    topics = models.JSONField(_("topics"), default=list, blank=True)
    address = models.PositiveIntegerField(
        default=0, editable=False, help_text=_("Of its process, to which hints are sent.")
    )

    class Meta:
        verbose_name = _("timer node")
        verbose_name_plural = _("timer nodes")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.name)
