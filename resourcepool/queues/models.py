"""Queue groups, their servers and queues, and the moves of queues."""

import math
from typing import Any, ClassVar, Self

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, router
from django.db.models import F

from resourcepool.db.dialect import DbNow, FenceField, KeyField, MicrosUntil
from resourcepool.db.dialect.fields import seconds
from resourcepool.db.transactions import fail_if_locked
from resourcepool.events.field import SentenceField
from resourcepool.leases.models import AbstractLease, LeaseQuerySet
from resourcepool.leases.terms import MIN_TTL
from resourcepool.options import check_labels
from resourcepool.text import CharField, TextField
from resourcepool.translation import gettext_lazy as _

MAX_NAME = 100
MAX_SERVER = MAX_NAME + 22  # "name #key"
MAX_QUEUE_ID = 100
MAX_PARAMETER = 2_000
MAX_BY = 150
MAX_WEIGHT = 1_000


class PlannerColumnsModel(models.Model):
    """A model with ``planner_columns``, which only planning writes; ``save`` skips them, except in ``update_fields``.

    Otherwise a stale instance would reset the owner of a queue, or hide a change from the servers.
    """

    planner_columns: ClassVar[frozenset[str]] = frozenset()

    class Meta:
        abstract = True

    def _do_update(self, base_qs: Any, using: Any, pk_val: Any, values: Any, fields: Any, *rest: Any) -> Any:
        written = [value for value in values if fields is not None or value[0].name not in self.planner_columns]
        return super()._do_update(base_qs, using, pk_val, written, fields, *rest)


class QueueGroup(PlannerColumnsModel):
    """One kind of work, split into queues, and the settings of its servers.

    Its row is the lock for all changes of owners: each such transaction begins by updating it. ``generation`` goes up
    with every change that its servers must see.
    """

    planner_columns = frozenset(
        {"generation", "is_assignment_due", "rests_until", "assigned_at", "assigned_by"}
    )

    class Strategy(models.TextChoices):
        STICKY = "sticky", _("sticky: the fewest moves")
        ROUND_ROBIN = "round_robin", _("round robin: in turn")

    name = KeyField(_("name"), max_length=MAX_NAME, unique=True)
    strategy = CharField(_("strategy"), max_length=20, choices=Strategy.choices, default=Strategy.STICKY)
    heartbeat_every = seconds(
        _("heartbeat every (s)"), 1.0, _("How often a server sends a heartbeat and checks for changes."), 0.1
    )
    judge_dead_after = seconds(
        _("presumed dead after (s)"),
        6.0,
        _("A server with no heartbeat for this long loses its queues; at least two heartbeats."),
        MIN_TTL,
    )
    reload_every = seconds(
        _("reload every (s)"), 0.2, _("Minimum time between two checks for changes by one server."), 0.01
    )
    handover_timeout = seconds(
        _("hand-over timeout (s)"),
        60.0,
        _("How long a server may keep working on a queue that is being handed over; then it is taken over."),
        MIN_TTL,
    )
    is_paused = models.BooleanField(
        _("paused"), default=False, help_text=_("No server starts work on its queues; assignments stay.")
    )
    generation = models.BigIntegerField(_("generation"), default=0, editable=False)
    is_assignment_due = models.BooleanField(default=False, editable=False)
    # No plan is due before this: the last plan met a locked row.
    rests_until = models.DateTimeField(null=True, editable=False)
    assigned_at = models.DateTimeField(_("last assigned at"), null=True, editable=False)
    assigned_by = CharField(_("last assigned by"), max_length=MAX_BY, default="", editable=False)

    class Meta:
        verbose_name = _("queue group")
        verbose_name_plural = _("queue groups")
        default_permissions = ("add", "change", "delete", "view", "operate")

    def __str__(self) -> str:
        return str(self.name)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save; a shorter ``handover_timeout`` of requested queues starts now, as their owners rely on the longer."""
        using = kwargs.get("using") or router.db_for_write(type(self), instance=self)
        if "handover_timeout" not in (kwargs.get("update_fields") or ("handover_timeout",)):
            with fail_if_locked(using):
                super().save(*args, **kwargs)
            return
        row = QueueGroup.objects.using(using).filter(pk=self.pk)
        with fail_if_locked(using):
            # An UPDATE first, as in every change of the queues, locks the row; the servers notice the generation.
            following = F("generation") + 1
            is_shorter = row.filter(handover_timeout__gt=self.handover_timeout).update(generation=following)
            if not is_shorter:
                row.filter(handover_timeout__lt=self.handover_timeout).update(generation=following)
            super().save(*args, **kwargs)
            if is_shorter:
                requested = Queue.objects.using(using).filter(queue_group=self.pk).exclude(requested_at=None)
                requested.update(requested_at=DbNow())

    def clean(self) -> None:
        """Refuse contradictory intervals."""
        spans = (self.heartbeat_every, self.judge_dead_after, self.reload_every, self.handover_timeout)
        if not all(isinstance(span, int | float) and math.isfinite(span) for span in spans):
            return  # each field reports its own error
        if self.judge_dead_after < 2 * self.heartbeat_every:
            text = _("At least two heartbeats (%(least)g s): one may be late.")
            raise ValidationError({"judge_dead_after": text % {"least": 2 * self.heartbeat_every}})
        if self.handover_timeout < self.judge_dead_after:
            text = _("At least the time after which a server is presumed dead (%(least)g s).")
            raise ValidationError({"handover_timeout": text % {"least": self.judge_dead_after}})
        if self.reload_every > self.heartbeat_every:
            text = _("At most one heartbeat (%(most)g s).")
            raise ValidationError({"reload_every": text % {"most": self.heartbeat_every}})


class ServerQuerySet(LeaseQuerySet):
    """Filters over servers, by the database's clock."""

    def alive(self) -> Self:
        """Return the servers that are not presumed dead."""
        return self.filter(busy_before__gt=DbNow())

    def with_ages(self) -> Self:
        """Add the whole microseconds until each server is presumed dead, and from now to its other times."""
        return self.annotate(
            micros_left=MicrosUntil("busy_before"),
            micros_registered=MicrosUntil("registered_at"),
            micros_idle=MicrosUntil("idle_since"),
            micros_last_activity=MicrosUntil("last_activity_at"),
        )


class Server(AbstractLease):
    """One run of a process that works on queues of a queue group. Its heartbeat renews the lease of this row.

    A process that registers again gets another row: ``name`` is for people and pins, the primary key for everything
    else. The row is removed when the server leaves or is presumed dead.
    """

    class State(models.TextChoices):
        UP = "up", _("up")
        DRAINING = "draining", _("draining")

    emits_events: ClassVar[bool] = False

    queue_group = models.ForeignKey(
        QueueGroup, on_delete=models.PROTECT, related_name="servers", verbose_name=_("queue group")
    )
    name = KeyField(_("name"), max_length=MAX_NAME)
    weight = models.PositiveIntegerField(
        _("weight"), default=1, validators=[MinValueValidator(1), MaxValueValidator(MAX_WEIGHT)]
    )
    labels = models.JSONField(_("labels"), default=dict, blank=True, validators=[check_labels])
    limit = models.PositiveIntegerField(_("queue limit"), null=True, blank=True)
    state = CharField(_("state"), max_length=10, choices=State.choices, default=State.UP)
    ttl = models.FloatField(_("presumed dead after (s)"))
    registered_at = models.DateTimeField(_("registered at"))
    idle_since = models.DateTimeField(_("no queue since"), null=True)
    # Null: unknown, or no activity is expected; see ``ActivityReporter``.
    last_activity_at = models.DateTimeField(_("last asked for work at"), null=True)
    in_hand = models.PositiveIntegerField(_("in hand"), default=0, db_default=0)

    objects: ClassVar[Any] = ServerQuerySet.as_manager()

    class Meta:
        verbose_name = _("queue server")
        verbose_name_plural = _("queue servers")
        default_permissions = ("view", "operate")

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"


def _server() -> Any:
    # No constraint, as it would lock the server's row, which its heartbeat renews.
    options: dict[str, Any] = {"on_delete": models.DO_NOTHING, "db_constraint": False, "related_name": "+"}
    return models.ForeignKey(Server, null=True, editable=False, **options)


class Queue(PlannerColumnsModel):
    """A part of a queue group's work. ``fence`` goes up whenever ``cur_server`` changes, at ``since``.

    ``cur_server`` and the lease of that server decide together which server has it. The ``planner_columns`` change only
    in a transaction that holds the queue group's row.
    """

    planner_columns = frozenset({"cur_server", "req_server", "fence", "requested_at", "since", "is_retiring"})

    queue_group = models.ForeignKey(
        QueueGroup, on_delete=models.PROTECT, related_name="queues", verbose_name=_("queue group")
    )
    queue_id = KeyField(_("queue"), max_length=MAX_QUEUE_ID)
    parameter = TextField(
        _("parameter"), default="", blank=True, max_length=MAX_PARAMETER, help_text=_("Passed to its server.")
    )
    labels = models.JSONField(
        _("labels"),
        default=dict,
        blank=True,
        validators=[check_labels],
        help_text=_('Only servers with all of these labels get it, e.g. {"zone": "eu"}.'),
    )
    pin = KeyField(_("pinned to"), max_length=MAX_NAME, default="", blank=True, help_text=_("A server's name."))
    cur_server, req_server = _server(), _server()
    fence = FenceField(_("fence"), default=0, editable=False)
    requested_at = models.DateTimeField(_("requested at"), null=True, editable=False)
    since = models.DateTimeField(_("owned since"), null=True, editable=False)
    is_retiring = models.BooleanField(_("being removed"), default=False, editable=False)

    class Meta:
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        default_permissions = ("add", "change", "delete", "view", "operate")
        constraints = [
            models.UniqueConstraint(fields=["queue_group", "queue_id"], name="resourcepool_queue_identity")
        ]
        indexes = [models.Index(fields=["queue_group", "requested_at"], name="resourcepool_queue_overdue")]

    def __str__(self) -> str:
        is_cached = Queue.queue_group.is_cached(self)  # no query just for a name
        return f"{self.queue_group if is_cached else self.queue_group_id} / {self.queue_id}"


class Move(models.Model):
    """A change of the owner, or of the next owner, of a queue. Rows are added, and pruned when old."""

    class Action(models.TextChoices):
        ASSIGNED = "assigned", _("assigned")
        REQUESTED = "requested", _("requested")
        HANDED_OVER = "handed_over", _("handed over")
        TAKEN_OVER = "taken_over", _("taken over")
        CANCELLED = "cancelled", _("request cancelled")
        UNASSIGNED = "unassigned", _("unassigned")
        REMOVED = "removed", _("removed")

    queue_group = KeyField(_("queue group"), max_length=MAX_NAME)
    generation = models.BigIntegerField(_("generation"))
    queue_pk = models.BigIntegerField()
    queue_id = KeyField(_("queue"), max_length=MAX_QUEUE_ID)
    what = CharField(_("action"), max_length=12, choices=Action.choices)
    from_server = CharField(_("from"), max_length=MAX_SERVER, default="")
    to_server = CharField(_("to"), max_length=MAX_SERVER, default="")
    fence = models.BigIntegerField(_("fence"))
    reason = SentenceField(_("reason"), default="")
    at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("move")
        verbose_name_plural = _("moves")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["queue_group", "generation", "queue_pk"], name="resourcepool_move_latest"),
            models.Index(fields=["at"], name="resourcepool_move_old"),
        ]

    def __str__(self) -> str:
        return f"{self.queue_group} {self.queue_id} {self.what}"
