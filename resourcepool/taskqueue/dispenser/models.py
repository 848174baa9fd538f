"""Dispensers, their tasks, and the buckets of workers."""

from typing import Any, ClassVar, Self

from django.core.validators import MinLengthValidator
from django.db import models
from django.db.models import F

from resourcepool.db.dialect import DbNow, FenceField, KeyField
from resourcepool.db.dialect.fields import check_finite, whole
from resourcepool.db.retry import Unsettled
from resourcepool.db.transactions import run_short_transaction
from resourcepool.leases.models import AbstractLease, LeaseQuerySet
from resourcepool.options import DAY
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.taskqueue import abstract
from resourcepool.taskqueue.abstract import (
    BARE_KEY,
    AbstractPlace,
    AbstractWork,
    WorkQuerySet,
)
from resourcepool.text import CharField
from resourcepool.translation import gettext_lazy as _, gettext_noop

MAX_KEY = 200


class Dispenser(AbstractPlace):
    """A pool of tasks, lowest score first. Created on first use."""

    none_yet = gettext_noop("an existing dispenser; dispensers are created on first use")

    name = KeyField(_("name"), max_length=MAX_KEY, primary_key=True, validators=[MinLengthValidator(1)])
    most_expirations = whole(
        _("expirations until failed"),
        5,
        _("A task fails once its bucket has expired this many times; an operator then retries or discards it."),
        1,
        1_000,
    )
    done_kept = abstract.done_kept_field(
        _("finished tasks kept (s)"),
        DAY,
        _(
            "How long finished tasks are kept, so that a rebuild does not add their keys again; failed tasks stay."
        ),
    )
    is_paused = abstract.is_paused_field(help_text=_("No tasks are handed out."))
    as_of = models.DateTimeField(
        _("data as of"),
        null=True,
        editable=False,
        help_text=_("When the computation of the last rebuild's mapping began."),
    )
    rebuilt_at = models.DateTimeField(_("rebuilt at"), null=True, editable=False)

    class Meta:
        verbose_name = _("dispenser")
        verbose_name_plural = _("dispensers")
        default_permissions = ("change", "delete", "view", "operate")


class BucketQuerySet(LeaseQuerySet):
    def revoke(self, actor: str = "") -> int:
        """Revoke these buckets: return their tasks to the pool under new fences, and delete them; return how many.

        A worker that continues with its tasks gets STALE for them, and a new bucket when it asks for tasks.

        Raises:
            RowLocked: a transaction has locked a bucket or a task in it; the buckets before it are revoked.
        """
        self._for_write = True  # not a replica
        # One transaction each, so that no other bucket is locked while it waits for a worker that is getting tasks.
        rows = self.order_by("pk").values_list("pk", "dispenser_id", "name")
        return sum(_revoke(self.db, pk, dispenser, worker, actor) for pk, dispenser, worker in rows)


def _revoke(using: str, pk: Any, dispenser: str, worker: str, actor: str) -> int:
    bucket = Bucket.objects.using(using).filter(pk=pk)

    def record() -> int:
        emit(RowEvent(EventKind.REVOKED, Dispenser, using, dispenser, holder=worker, actor=actor))
        return 1

    def settle() -> int:
        if bucket.exists():
            raise Unsettled
        return record()

    def once() -> int:
        if not bucket.update(fence=F("fence") + 1):  # locks it against assignments
            return 0
        tasks = DispenserTask.objects.using(using).filter(bucket_id=pk, state=DispenserTask.State.ASSIGNED)
        # All processes lock tasks in the order of their primary keys.
        mine = tasks.filter(pk__in=list(tasks.order_by("pk").values_list("pk", flat=True)))
        mine.update(state=DispenserTask.State.READY, bucket=None, fence=F("fence") + 1)
        bucket._raw_delete(using)
        return record()

    return run_short_transaction(using, once, settle=settle, rows=(Bucket, [pk]))


class Bucket(AbstractLease):
    """The lease of one worker on all its tasks of one dispenser; ``holder`` is the worker.

    It is deleted once it has expired and its tasks have returned to the pool.
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


class DispenserTask(AbstractWork):
    """A task of a dispenser: a key and a score. Every assignment has its own fence."""

    class State(models.TextChoices):
        READY = "ready", _("ready")
        ASSIGNED = "assigned", _("assigned")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        DISCARDED = "discarded", _("discarded")

    key_columns = ("dispenser_id", "key")
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
