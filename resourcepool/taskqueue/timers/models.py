"""Timers, their topics, and the nodes that handle them."""

import datetime
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from django.core.exceptions import ValidationError
from django.core.validators import MinLengthValidator
from django.db import connections, models, transaction
from django.db.models import Case, F, Q, When
from packaging.version import InvalidVersion, Version

from resourcepool.db.dialect import DbLater, DbNow, KeyField, in_columns
from resourcepool.db.dialect.fields import seconds
from resourcepool.events import sentence_for
from resourcepool.leases.models import AbstractLease, LeaseQuerySet
from resourcepool.options import DAY, check_labels
from resourcepool.signals import EventKind
from resourcepool.taskqueue import abstract
from resourcepool.taskqueue.abstract import (
    BARE_KEY,
    AbstractPlace,
    AbstractWork,
    AttemptSettings,
    WorkQuerySet,
)
from resourcepool.text import CharField, TextField, format_labels
from resourcepool.translation import gettext, gettext_lazy as _, gettext_noop

MAX_NAME = 200
MAX_TOPIC = 100
MAX_SCHEDULE = 300
CANARY = "canary"  # the label
LATE_AFTER = 60.0  # seconds; punctual timers go before late ones
RESEND_AFTER = 60.0  # seconds until a timer that was handed over is due again, unless it was claimed

# Pending, or the handler's process has crashed.
_HAS_NO_HOLDER = Q(state="pending") | Q(busy_before__lte=DbNow())


def check_version(version: str) -> None:
    """Validate a version, for model fields; raises ValidationError."""
    try:
        Version(version)
    except InvalidVersion:
        raise ValidationError(gettext("A version must be like 2.10 or 2.10rc1 (PEP 440).")) from None


def is_enough(version: str, least: str) -> bool:
    """Whether a version is ``least`` or later: 2.9 < 2.10rc1 < 2.10 = v2.10 = 2.10.0 < 2.10.1 (PEP 440).

    Every version is later than ``""``; one that cannot be read is not later than any other.
    """
    try:
        return not least or Version(version) >= Version(least)
    except InvalidVersion:
        return False


class Topic(AttemptSettings, AbstractPlace):
    """A kind of timers: which nodes may handle them, and how failures are treated. Created on first use."""

    waiting_state, given_up_state = "pending", "dead"
    none_yet = gettext_noop("a topic; none exists yet: the first timer creates it")

    name = KeyField(_("name"), max_length=MAX_TOPIC, primary_key=True, validators=[MinLengthValidator(1)])
    is_paused = abstract.is_paused_field(help_text=_("No new timers are started."))
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
        _("minimum version"),
        max_length=50,
        default="",
        blank=True,
        validators=[check_version],
        help_text=_("Only nodes of this version or later handle it, e.g. 2.10; empty: all nodes."),
    )
    ttl = seconds(
        _("ttl (s)"), 30.0, _("How long after its handler's process crashes a timer fires again."), 1.0
    )
    retries = abstract.retries_field(0, _("How many times a failed timer is retried."))
    retry_delay = abstract.retry_delay_field(_("Time before the first retry; it doubles for each further one."))
    max_crashes = abstract.max_crashes_field(
        _("A timer fails for good once its process has crashed this many times.")
    )
    done_kept = abstract.done_kept_field(
        _("finished timers kept (s)"),
        DAY,
        _("How long finished timers are kept, except failed ones; 0: deleted once done."),
    )

    class Meta:
        verbose_name = _("timer topic")
        verbose_name_plural = _("timer topics")
        default_permissions = ("change", "delete", "view", "operate")

    def delay(self, failures: int) -> float:
        """Return the time before the next attempt: doubled with every failure, an hour at most."""
        return float(min(max(3_600.0, self.retry_delay), self.retry_delay * 2.0 ** min(failures - 1, 60)))

    def refusal(self, labels: Mapping[str, str], version: str) -> str:
        """Return why a node with these labels and this version may not handle its timers; "": it may."""
        if CANARY in labels and not self.on_canary:
            return gettext("a canary node, not allowed by this topic")
        if missing := {key: value for key, value in self.requires.items() if labels.get(key) != value}:
            return gettext("lacks %s") % format_labels(missing)
        if not is_enough(version, self.least_version):
            values = {"version": version or "-", "least": self.least_version}
            return gettext("its version is %(version)s, the topic requires %(least)s") % values
        return ""


class TimerQuerySet(LeaseQuerySet, WorkQuerySet):  # type: ignore[override]  # as_manager of both
    def in_order(self) -> Self:
        """By due time; finished timers apart."""
        return self.order_by("finished_at", "busy_before")

    def pending(self) -> Self:
        """Timers that wait for their time, for a node, or for a retry."""
        return self.filter(state=Timer.State.PENDING, finished_at=None)

    def due(self) -> Self:
        """Timers that a node may begin now, including timers whose handler's process has crashed."""
        return self.unfinished().filter(busy_before__lte=DbNow())

    def late(self) -> Self:
        """Timers that have been due for more than a minute."""
        return self.unfinished().filter(busy_before__lt=DbLater(-LATE_AFTER))

    def handed(self) -> Self:
        """Timers that were handed over to another process and are not yet claimed."""
        return self.pending().exclude(holder="")

    def waiting(self) -> Self:
        return self.pending().filter(busy_before__gt=DbNow())

    def cancellable(self) -> Self:
        """Timers that can be kept from firing, or from firing again."""
        return self.unfinished().filter(_HAS_NO_HOLDER | ~Q(schedule=""))

    def fire(self, actor: str = "") -> int:
        """Make waiting timers due now; return how many."""
        is_ahead = When(due_at__gt=DbNow(), then=DbNow())
        due_at = Case(is_ahead, default=F("due_at"))
        waiting = (self.waiting(), EventKind.FIRED, actor, "")
        return abstract.update_and_record(*waiting, due_at=due_at, busy_before=DbNow(), fence=F("fence") + 1)

    def cancel(self, actor: str = "") -> int:
        """Keep timers from firing, and running recurring ones from firing again; return how many."""
        self._for_write = True  # ``db`` must not be a replica
        event = (EventKind.CANCELLED, actor, "")
        running, waiting = self.unfinished().exclude(_HAS_NO_HOLDER), self.unfinished().filter(_HAS_NO_HOLDER)
        with transaction.atomic(using=self.db):
            cancelled = abstract.update_and_record(running.exclude(schedule=""), *event, schedule="")
            return cancelled + abstract.update_and_record(
                *(waiting, *event),
                state=Timer.State.CANCELLED,
                fence=F("fence") + 1,
                finished_at=DbNow(),
                outcome=sentence_for("cancelled", name=actor or "?"),
                **Timer.unassigned_values(),
            )


class Timer(AbstractLease, AbstractWork):
    """A scheduled event. While it waits, ``busy_before`` is the time at which it is due.

    While its handler runs, ``busy_before`` is the end of the handler's lease. So one condition finds due timers and the
    timers of crashed processes.
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
        ONCE = "once", _("once: missed occurrences fire once, together")
        ALL = "all", _("all: each missed occurrence fires")
        SKIP = "skip", _("skip: missed occurrences do not fire")

    class End(models.TextChoices):
        NONE = "", _("none yet")
        CLEAN = "clean", _("clean")
        EXPIRED = "expired", _("expired")
        RELEASED = "released", _("released")

    key_columns = ("topic_id", "name")
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
        help_text=_("Recurring schedule as JSON; empty: one-shot."),
    )
    catch_up = CharField(_("catch-up"), max_length=10, choices=CatchUp.choices, default=CatchUp.ONCE)
    state = CharField(_("state"), max_length=10, choices=State.choices, default=State.PENDING, editable=False)
    attempts = models.PositiveIntegerField(_("attempts"), default=0, editable=False)
    failures = models.PositiveIntegerField(_("failures"), default=0, editable=False)
    crashes = models.PositiveIntegerField(_("process crashes"), default=0, editable=False)
    previous_end = CharField(
        _("previous end"),
        max_length=10,
        choices=End.choices,
        default=End.NONE,
        blank=True,
        editable=False,
        help_text=_("How the previous attempt ended."),
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
        """Return the column values of a new timer that is due at this time."""
        counts, moment = {"attempts": 0, "failures": 0, "crashes": 0}, in_columns(due_at, connections[using])
        waits = {"due_at": moment, "busy_before": moment, "holder": "", "finished_at": None, "outcome": ""}
        return {"state": cls.State.PENDING, **waits, **counts, "previous_end": cls.End.NONE}


class TimerNode(AbstractLease):
    """A process that handles timers; alive until ``busy_before``."""

    emits_events: ClassVar[bool] = False

    name = KeyField(_("name"), max_length=MAX_NAME, primary_key=True)
    labels = models.JSONField(_("labels"), default=dict, blank=True, validators=[check_labels])
    version = CharField(_("version"), max_length=50, default="", blank=True)
    topics = models.JSONField(_("topics"), default=list, blank=True)
    address = models.PositiveIntegerField(
        default=0, editable=False, help_text=_("Address of the process, for hints.")
    )

    class Meta:
        verbose_name = _("timer node")
        verbose_name_plural = _("timer nodes")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.name)
