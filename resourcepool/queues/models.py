"""Queue groups, their servers and queues, and the moves of queues (R1.1, R1.4)."""

import math
from typing import Any, ClassVar, Self

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connections, models, router
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from resourcepool.database.columns import seconds
from resourcepool.database.open_transaction import set_idle_timeout
from resourcepool.database.short_statements import fail_if_locked
from resourcepool.dialect import DbNow, FenceField, KeyField, MicrosUntil
from resourcepool.events import SentenceField
from resourcepool.labels import check_labels
from resourcepool.leases.models import AbstractLease, LeaseQuerySet
from resourcepool.leases.terms import MIN_TTL
from resourcepool.text import CharField, TextField

MAX_NAME = 100
MAX_SERVER = MAX_NAME + 22  # its name and its key
MAX_QUEUE_ID = 100
MAX_PARAMETER = 2_000
MAX_BY = 150
MAX_WEIGHT = 1_000


class Planned(models.Model):
    """A row with ``planned`` columns, which only planning writes; ``save`` skips them, except in ``update_fields``.

    Otherwise a stale instance would reset the owner of a queue, or hide a change from the servers.
    """

    planned: ClassVar[frozenset[str]] = frozenset()

    class Meta:
        abstract = True

    def _do_update(self, base_qs: Any, using: Any, pk_val: Any, values: Any, fields: Any, *rest: Any) -> Any:
        kept = [value for value in values if fields is not None or value[0].name not in self.planned]
        return super()._do_update(base_qs, using, pk_val, kept, fields, *rest)


class QueueGroup(Planned):
    """A kind of work that is split into queues, and the intervals of its servers.

    Its row is the mutex for all changes of owners: each such transaction begins by updating it. ``generation`` goes up
    with every change that its servers must know of.
    """

    planned = frozenset({"generation", "is_assignment_due", "rests_until", "assigned_at", "assigned_by"})

    class Strategy(models.TextChoices):
        STICKY = "sticky", _("sticky: the fewest moves")
        ROUND_ROBIN = "round_robin", _("round robin: in turn")

    name = KeyField(_("name"), max_length=MAX_NAME, unique=True)
    strategy = CharField(_("strategy"), max_length=20, choices=Strategy.choices, default=Strategy.STICKY)
    heartbeat_every = seconds(
        _("heartbeat every (s)"), 1.0, _("So often a server renews itself, and looks for changes."), 0.1
    )
    judge_dead_after = seconds(
        _("judged dead after (s)"),
        6.0,
        _("A server without a heartbeat for so long has lost its queues; at least two heartbeats."),
        MIN_TTL,
    )
    reload_every = seconds(
        _("reload every (s)"), 0.2, _("No server looks for changes more often than that."), 0.01
    )
    handover_timeout = seconds(
        _("drained within (s)"),
        60.0,
        _("So long a server may finish its work on a queue that is to go elsewhere; then it is taken over."),
        MIN_TTL,
    )
    is_paused = models.BooleanField(
        _("paused"), default=False, help_text=_("Nobody begins work on its queues; who has which stays.")
    )
    generation = models.BigIntegerField(_("generation"), default=0, editable=False)
    is_assignment_due = models.BooleanField(default=False, editable=False)
    # No plan is due before: the last one met a locked row.
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
        """Save. A shorter ``handover_timeout`` starts now for queues already asked for: their owners rely on the longer."""
        using = kwargs.get("using") or router.db_for_write(type(self), instance=self)
        if "handover_timeout" not in (kwargs.get("update_fields") or ("handover_timeout",)):
            with fail_if_locked(using):
                super().save(*args, **kwargs)
            return
        same = QueueGroup.objects.using(using).filter(pk=self.pk)
        with fail_if_locked(using):
            set_idle_timeout(connections[using])
            # An UPDATE first, as in every change of the queues, locks the row; the servers notice the generation.
            next_one = F("generation") + 1
            is_shorter = same.filter(handover_timeout__gt=self.handover_timeout).update(generation=next_one)
            if not is_shorter:
                same.filter(handover_timeout__lt=self.handover_timeout).update(generation=next_one)
            super().save(*args, **kwargs)
            if is_shorter:
                asked = Queue.objects.using(using).filter(queue_group=self.pk).exclude(requested_at=None)
                asked.update(requested_at=DbNow())

    def clean(self) -> None:
        """Refuse contradictory intervals."""
        spans = (self.heartbeat_every, self.judge_dead_after, self.reload_every, self.handover_timeout)
        if not all(isinstance(span, int | float) and math.isfinite(span) for span in spans):
            return  # reported for the field itself
        if self.judge_dead_after < 2 * self.heartbeat_every:
            text = _("At least two heartbeats (%(least)g s): one may be late.")
            raise ValidationError({"judge_dead_after": text % {"least": 2 * self.heartbeat_every}})
        if self.handover_timeout < self.judge_dead_after:
            text = _("At least as long as until a server is judged dead (%(least)g s).")
            raise ValidationError({"handover_timeout": text % {"least": self.judge_dead_after}})
        if self.reload_every > self.heartbeat_every:
            text = _("At most a heartbeat (%(most)g s).")
            raise ValidationError({"reload_every": text % {"most": self.heartbeat_every}})


class ServerQuerySet(LeaseQuerySet):
    """Filters over servers, by the database's clock."""

    def alive(self) -> Self:
        """Return servers that are not judged dead."""
        return self.filter(busy_before__gt=DbNow())

    def with_ages(self) -> Self:
        """Add the whole microseconds until each is judged dead, and since other known moments."""
        return self.annotate(
            micros_left=MicrosUntil("busy_before"),
            micros_registered=MicrosUntil("registered_at"),
            micros_idle=MicrosUntil("idle_since"),
            micros_last_activity=MicrosUntil("last_activity_at"),
        )


class Server(AbstractLease):
    """One run of a process that works on queues of a queue group. Its heartbeat is the renewal of this row's lease.

    A process that comes back gets another row: ``name`` is for people and pins, the primary key for everything else.
    The row is removed when the server leaves or is found dead.
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
    limit = models.PositiveIntegerField(_("at most"), null=True, blank=True)
    state = CharField(_("state"), max_length=10, choices=State.choices, default=State.UP)
    ttl = models.FloatField(_("judged dead after (s)"))
    registered_at = models.DateTimeField(_("registered at"))
    idle_since = models.DateTimeField(_("without a queue since"), null=True)
    # Null: nothing is known, or expected; see ``ActivityReporter``.
    last_activity_at = models.DateTimeField(_("last asked for work at"), null=True)
    in_hand = models.PositiveIntegerField(_("in hand"), default=0, db_default=0)

    objects: ClassVar[Any] = ServerQuerySet.as_manager()

    class Meta:
        verbose_name = _("server")
        verbose_name_plural = _("servers")
        default_permissions = ("view", "operate")

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"


def _server() -> Any:
    # No constraint: it would lock the server's row, which its heartbeat renews.
    options: dict[str, Any] = {"on_delete": models.DO_NOTHING, "db_constraint": False, "related_name": "+"}
    return models.ForeignKey(Server, null=True, editable=False, **options)


class Queue(Planned):
    """A part of a queue group's work. ``fence`` goes up whenever ``cur_server`` changes, at ``since``.

    ``cur_server`` and that server's lease together decide who has it; the ``planned`` columns change only in a
    transaction that holds the queue group's row.
    """

    planned = frozenset({"cur_server", "req_server", "fence", "requested_at", "since", "is_retiring"})

    queue_group = models.ForeignKey(
        QueueGroup, on_delete=models.PROTECT, related_name="queues", verbose_name=_("queue group")
    )
    queue_id = KeyField(_("queue"), max_length=MAX_QUEUE_ID)
    parameter = TextField(
        _("parameter"), default="", blank=True, max_length=MAX_PARAMETER, help_text=_("Given to its server.")
    )
    labels = models.JSONField(
        _("labels"),
        default=dict,
        blank=True,
        validators=[check_labels],
        help_text=_('Only servers with all of these get it, e.g. {"zone": "eu"}.'),
    )
    pin = KeyField(_("pinned to"), max_length=MAX_NAME, default="", blank=True, help_text=_("A server's name."))
    cur_server, req_server = _server(), _server()
    fence = FenceField(_("fence"), default=0, editable=False)
    requested_at = models.DateTimeField(_("asked for at"), null=True, editable=False)
    since = models.DateTimeField(_("there since"), null=True, editable=False)
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
        is_read = Queue.queue_group.is_cached(self)  # no query just for a name
        return f"{self.queue_group if is_read else self.queue_group_id} / {self.queue_id}"


class Move(models.Model):
    """A change of the owner, or the next owner, of a queue; only added and, when old, removed."""

    class Action(models.TextChoices):
        ASSIGNED = "assigned", _("assigned")
        REQUESTED = "requested", _("asked for")
        HANDED_OVER = "handed_over", _("handed over")
        TAKEN_OVER = "taken_over", _("taken over")
        CANCELLED = "cancelled", _("not asked for any more")
        UNASSIGNED = "unassigned", _("unassigned")
        REMOVED = "removed", _("removed")

    queue_group = KeyField(_("queue group"), max_length=MAX_NAME)
    generation = models.BigIntegerField(_("generation"))
    queue_pk = models.BigIntegerField()
    queue_id = KeyField(_("queue"), max_length=MAX_QUEUE_ID)
    what = CharField(_("what"), max_length=12, choices=Action.choices)
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
