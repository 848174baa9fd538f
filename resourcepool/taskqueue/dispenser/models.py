"""A dispenser, its tasks, and the buckets in which workers have them (document 003: R3.1-R3.6)."""

from typing import Any, ClassVar, Self

from django.core.validators import MinLengthValidator
from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from resourcepool.database.columns import check_finite, seconds, whole
from resourcepool.database.retry import Unsettled
from resourcepool.dialect import DbNow, FenceField, KeyField
from resourcepool.leases.models import AbstractLease, LeaseQuerySet
from resourcepool.leases.short_transactions import run_short_transaction
from resourcepool.options import DAY
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.taskqueue.abstract import (
    BARE_KEY,
    AbstractWork,
    PausableQuerySet,
    WorkQuerySet,
    update_and_record,
)
from resourcepool.text import CharField

MAX_KEY = 200


class Dispenser(models.Model):
    """A pool of tasks, lowest score first. Made when it is first used."""

    records_operations: ClassVar[bool] = True
    none_yet = gettext_noop("an existing dispenser; it is made when it is first used")

    name = KeyField(_("name"), max_length=MAX_KEY, primary_key=True, validators=[MinLengthValidator(1)])
    most_expirations = whole(
        _("expirations until failed"),
        5,
        _("A task whose bucket has expired this many times leaves the pool, for an operator to look at."),
        1,
        1_000,
    )
    done_kept = seconds(
        _("finished tasks kept (s)"),
        DAY,
        _(
            "How long finished keys are remembered, so that a rebuild does not bring them back; failed ones stay."
        ),
        most=3_650 * DAY,
    )
    is_paused = models.BooleanField(_("paused"), default=False, help_text=_("No more tasks are handed out."))
    as_of = models.DateTimeField(
        _("as of"),
        null=True,
        editable=False,
        help_text=_("When the last rebuild's mapping began to be computed."),
    )
    rebuilt_at = models.DateTimeField(_("rebuilt at"), null=True, editable=False)

    objects: ClassVar[Any] = PausableQuerySet.as_manager()

    class Meta:
        verbose_name = _("dispenser")
        verbose_name_plural = _("dispensers")
        default_permissions = ("change", "delete", "view", "operate")

    def __str__(self) -> str:
        return str(self.name)


class BucketQuerySet(LeaseQuerySet):
    def revoke(self, actor: str = "") -> int:
        """Return their tasks to the pool under new fences, and end them; returns how many buckets there were.

        A worker that goes on with its tasks is told that they are stale; it gets a new bucket when it asks for more.

        Raises:
            RowLocked: a transaction has a bucket, or a task in it, locked; the buckets before it are free.
        """
        self._for_write = True  # what decides is not asked of a replica
        # One transaction each: it may wait for a worker that is getting tasks, with no other bucket locked.
        found = self.order_by("pk").values_list("pk", "dispenser_id", "name")
        return sum(_freed(self.db, pk, dispenser, worker, actor) for pk, dispenser, worker in found)


def _freed(using: str, pk: Any, dispenser: str, worker: str, actor: str) -> int:
    bucket = Bucket.objects.using(using).filter(pk=pk)

    def freed() -> int:
        emit(RowEvent(EventKind.REVOKED, Dispenser, using, dispenser, holder=worker, actor=actor))
        return 1

    def settle() -> int:
        if bucket.exists():
            raise Unsettled
        return freed()

    def once() -> int:
        if not bucket.update(fence=F("fence") + 1):  # locks it, so that nothing is put into it
            return 0
        tasks = DispenserTask.objects.using(using).filter(bucket_id=pk, state=DispenserTask.State.ASSIGNED)
        # By primary key, in the order in which everybody locks them.
        mine = tasks.filter(pk__in=list(tasks.order_by("pk").values_list("pk", flat=True)))
        mine.update(state=DispenserTask.State.READY, bucket=None, fence=F("fence") + 1)
        bucket._raw_delete(using)
        return freed()

    return run_short_transaction(using, once, settle=settle, rows=(Bucket, [pk]))


class Bucket(AbstractLease):
    """The lease of one worker on all the tasks that it has of one dispenser; ``holder`` is the worker.

    It is deleted when it has expired and its tasks are back in the pool.
    """

    emits_events: ClassVar[bool] = False

    dispenser = models.ForeignKey(
        Dispenser, models.PROTECT, related_name="buckets", verbose_name=_("dispenser"), **BARE_KEY
    )
    name = KeyField(_("name"), max_length=MAX_KEY)

    objects: ClassVar[Any] = BucketQuerySet.as_manager()

    class Meta:
        verbose_name = _("bucket")
        verbose_name_plural = _("buckets")
        default_permissions = ("view", "operate")
        constraints = [models.UniqueConstraint(fields=["dispenser", "name"], name="resourcepool_bucket_name")]
        indexes = [models.Index(fields=["dispenser", "busy_before"], name="resourcepool_bucket_expires")]

    def __str__(self) -> str:
        return f"{self.dispenser_id}/{self.name}"


class DispenserTaskQuerySet(WorkQuerySet):
    def in_order(self) -> Self:
        return self.order_by("score", "pk")

    def fail(self, outcome: str) -> int:
        """Take tasks out of buckets and pool, for an operator to look at; return how many."""
        failed = {"state": DispenserTask.State.FAILED, "bucket": None, "finished_at": DbNow()}
        return update_and_record(
            self, EventKind.FAILED, "", outcome, fence=F("fence") + 1, outcome=outcome, **failed
        )


class DispenserTask(AbstractWork):
    """A task of a dispenser: a key and a score. Every time it is handed out it has a fence of its own."""

    class State(models.TextChoices):
        READY = "ready", _("ready")
        ASSIGNED = "assigned", _("assigned")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        DISCARDED = "discarded", _("discarded")

    named_by = ("dispenser_id", "key")
    ready_state = State.READY
    failed_states = (State.FAILED, State.DISCARDED)
    discardable_states = (State.READY, State.FAILED)
    reset_counts: ClassVar[dict[str, Any]] = {"expirations": 0}

    dispenser = models.ForeignKey(
        Dispenser, models.PROTECT, related_name="tasks", verbose_name=_("dispenser"), **BARE_KEY
    )
    key = KeyField(_("key"), max_length=MAX_KEY)
    score = models.FloatField(
        _("score"), validators=[check_finite], help_text=_("The lowest score is handed out first.")
    )
    state = CharField(_("state"), max_length=10, choices=State.choices, default=State.READY, editable=False)
    bucket = models.ForeignKey(
        Bucket,
        models.DO_NOTHING,
        related_name="tasks",
        verbose_name=_("bucket"),
        null=True,
        editable=False,
        db_constraint=False,
    )
    fence = FenceField(_("fence"), default=0, editable=False)
    expirations = models.PositiveIntegerField(_("expirations"), default=0, editable=False)
    added_at = models.DateTimeField(_("added at"), default=DbNow, editable=False)
    assigned_at = models.DateTimeField(_("assigned at"), null=True, editable=False)

    objects: ClassVar[Any] = DispenserTaskQuerySet.as_manager()

    class Meta:
        verbose_name = _("dispenser task")
        verbose_name_plural = _("dispenser tasks")
        default_permissions = ("view", "operate")
        constraints = [models.UniqueConstraint(fields=["dispenser", "key"], name="resourcepool_dispensed_key")]
        indexes = [
            models.Index(fields=["dispenser", "state", "score", "id"], name="resourcepool_dispensed_order"),
            models.Index(fields=["dispenser", "finished_at"], name="resourcepool_dispensed_old"),
        ]

    @classmethod
    def unassigned_values(cls) -> dict[str, Any]:
        return {"bucket": None}
