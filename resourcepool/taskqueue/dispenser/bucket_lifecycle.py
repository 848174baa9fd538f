"""The life of a bucket: created when its worker first asks for tasks, filled, and reclaimed when it has expired."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.open_transaction import refuse_callers_transaction
from resourcepool.db.receipts import commit_once
from resourcepool.db.retry import retrying
from resourcepool.db.row_locks import row_locked
from resourcepool.db.rows import batched, ensure_row
from resourcepool.db.transactions import short_transaction
from resourcepool.events import sentence_for
from resourcepool.signals import EventKind
from resourcepool.taskqueue.abstract import CHUNK, update_and_record
from resourcepool.taskqueue.dispenser import statements
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue.dispenser.statements import DispenserSnapshot, Row

MAX_TRIES = 8  # the bucket may expire while it is filled
TRIES_WITHOUT_PAUSE = 3  # the dispenser may have to be created, and then the bucket
WAIT = 10  # seconds, integer, to wait for a locked row: longer than a suspended process can keep it locked
WHOLE_REBUILD = 60  # the same, if a rebuild may have locked the pool
SHORT_REBUILD = 1  # the same, for a worker that has got some tasks already
RECLAIM_BATCH = 100  # expired buckets in one transaction: after an outage all of them have expired
State = DispenserTask.State
Answer = TypeVar("Answer")


def database() -> str:
    return str(router.db_for_write(DispenserTask))


def refuse_assignment_in_transaction(connection: BaseDatabaseWrapper) -> None:
    """Raise ClaimInTransaction if the caller has an open transaction, whose rollback would undo the assignment."""
    refuse_callers_transaction(
        connection,
        f"a transaction is open on database {connection.alias!r}: tasks assigned inside it would be invisible to others"
        " until the commit and undone by a rollback. Assign before transaction.atomic() (ATOMIC_REQUESTS opens one for"
        " every view); tasks_done() belongs inside",
    )


def in_transaction(using: str, send: Callable[[], Answer]) -> Answer:
    """Run ``send`` in a short transaction, and commit exactly once."""
    return commit_once(connections[using], send, wait=WAIT)


def make_dispenser(using: str, name: str) -> None:
    """Create the row of a dispenser if it does not exist."""
    retrying(connections[using], partial(ensure_row, Dispenser, using, name))


@dataclass(frozen=True, slots=True)
class WorkerBucket:
    """The bucket of this name in a dispenser; ``ttl`` in seconds."""

    using: str
    dispenser: str
    name: str
    ttl: float

    @property
    def connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    def find(self, *, is_live: bool = False) -> int | None:
        """Return the primary key of the bucket; ``is_live``: only if it has not expired."""
        rows = Bucket.objects.using(self.using).filter(dispenser_id=self.dispenser, name=self.name)
        rows = rows.filter(busy_before__gt=DbNow()) if is_live else rows
        pk = retrying(self.connection, lambda: rows.values_list("pk", flat=True).first())
        return None if pk is None else int(pk)

    def expire(self, seconds: float) -> bool:
        """Let it expire in this time; False: it does not exist, or has expired."""
        if (bucket := self.find(is_live=True)) is None:
            return False
        return retrying(self.connection, partial(statements.touch, self.connection, bucket, seconds))

    def open(self) -> DispenserSnapshot:
        """Reclaim the dispenser's expired buckets, and create this bucket unless it is live.

        Raises:
            RowLocked: a suspended process keeps the old bucket locked.
        """
        for attempt in range(MAX_TRIES):
            if attempt >= TRIES_WITHOUT_PAUSE:  # other processes are reclaiming a bucket of this name
                time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311 (jitter, not a secret)
            read = partial(statements.read_snapshot, self.connection, self.dispenser, self.name)
            seen = retrying(self.connection, read)
            if seen is None:
                make_dispenser(self.using, self.dispenser)
                continue
            for expired in batched(seen.expired, RECLAIM_BATCH):
                reclaim_expired(self.using, expired, seen.most_expirations)
            if seen.bucket is not None:
                # A reclaimed task may come before the former first one.
                return seen._replace(head=None) if seen.expired else seen
            columns = {"holder": self.name, "busy_before": DbLater(self.ttl)}
            row = Bucket(dispenser_id=self.dispenser, name=self.name, **columns)
            create = partial(Bucket.objects.using(self.using).bulk_create, [row], ignore_conflicts=True)
            retrying(self.connection, create)
        raise row_locked(self.using)

    def write(
        self, send: Callable[[DispenserSnapshot], list[Row] | None]
    ) -> tuple[DispenserSnapshot, list[Row]]:
        """Let ``send`` write to the live bucket; create it again if ``send`` returns None (expired)."""
        for _ in range(MAX_TRIES):
            seen = self.open()
            rows = send(seen)
            if rows is not None:
                return seen, rows
        raise row_locked(self.using)

    def fill(self, limit: int) -> list[Row]:
        """Fill the bucket to ``limit`` tasks, as far as the pool has them; return its tasks in order.

        The bucket keeps its tasks and gets the first ones of the pool. If it has more than ``limit``, the last ones
        return.

        Raises:
            ClaimInTransaction: the caller has an open transaction.
            DatabaseUnavailable: the bucket may have been filled; call it again.
        """
        refuse_assignment_in_transaction(self.connection)
        seen, rows = self._fill(limit, WAIT)
        can_wait = not rows or self.ttl > 2 * SHORT_REBUILD
        if len(rows) < limit and not seen.is_paused and can_wait and self._are_there_more():
            # A rebuild may have locked the remaining tasks: wait for it instead of returning too few. A worker with
            # tasks waits only shortly: they could expire meanwhile.
            busy, wait = ((lambda: rows), SHORT_REBUILD) if rows else (None, WHOLE_REBUILD)
            return self._fill(limit, wait, busy, after_rebuild=True)[1]
        return rows

    def _fill(
        self,
        limit: int,
        wait: int,
        busy: Callable[[], list[Row] | None] | None = None,
        *,
        after_rebuild: bool = False,
    ) -> tuple[DispenserSnapshot, list[Row]]:
        # Safe to send again: a full bucket is only read.
        send = partial(self._fill_once, limit, wait, after_rebuild)
        return self.write(lambda seen: retrying(self.connection, partial(send, seen), busy=busy))

    def _fill_once(
        self, limit: int, wait: int, after_rebuild: bool, seen: DispenserSnapshot
    ) -> list[Row] | None:
        connection, bucket = self.connection, seen.live_bucket
        with short_transaction(connection, wait=wait):
            if after_rebuild:
                locked = Dispenser.objects.using(self.using).filter(pk=self.dispenser).select_for_update()
                list(locked.values_list("pk"))
            if not statements.touch(connection, bucket, self.ttl):
                return None
            rows = statements.tasks_in_bucket(connection, bucket)
            if len(rows) > limit:
                statements.give_back(connection, bucket, rows[limit:])
                return rows[:limit]
            if len(rows) == limit or seen.is_paused:
                return rows
            head = None if after_rebuild else seen.head  # the rebuild may have changed the scores since
            more = statements.lock_first_ready(connection, self.dispenser, limit - len(rows), head)
            if not more:
                return rows
            taken = statements.take(connection, bucket, more)
            # Another process of this name may have returned or finished tasks since they were read.
            return statements.tasks_in_bucket(connection, bucket) if rows else taken

    def _are_there_more(self) -> bool:
        rows = DispenserTask.objects.using(self.using).filter(dispenser_id=self.dispenser, state="ready")
        # Without an order PostgreSQL may search all finished tasks.
        return bool(retrying(self.connection, lambda: list(rows.in_order().values_list("pk")[:1])))


def reclaim_expired(using: str, buckets: list[int], most_expirations: int) -> int:
    """Return the tasks of expired buckets to the pool, or fail tasks that expired too often; return how many.

    Skips buckets that were touched since, or that another process is reclaiming. A bucket with locked tasks stays
    expired.
    """
    connection, rows = connections[using], Bucket.objects.using(using)
    skips = connection.features.has_select_for_update_skip_locked

    def send() -> int:
        with short_transaction(connection, wait=WAIT):
            return reclaim()

    def reclaim() -> int:
        expired = rows.filter(pk__in=buckets, busy_before__lte=DbNow())
        if skips:  # do not wait for a worker that is suspended during an assignment
            expired = rows.filter(pk__in=_keys(expired.select_for_update(skip_locked=True)))
        if not expired.update(fence=F("fence") + 1):
            return 0
        pks = _keys(expired)
        tasks = DispenserTask.objects.using(using).filter(bucket_id__in=pks, state=State.ASSIGNED)
        # Do not wait for tasks that a worker is finishing in its own transaction.
        unlocked = tasks.select_for_update(skip_locked=True) if skips else tasks
        # All processes lock tasks in the order of their primary keys.
        had = list(unlocked.order_by("pk").values_list("pk", "expirations"))
        for batch in batched(had, CHUNK):
            _return_expired(tasks, dict(batch), most_expirations)
        left = set(tasks.values_list("bucket_id", flat=True))
        rows.filter(pk__in=set(pks) - left)._raw_delete(using)
        return len(had)

    return retrying(connection, send)


def _keys(rows: Any) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _return_expired(tasks: Any, had: dict[int, int], most_expirations: int) -> None:
    """Return these locked tasks, {primary key: expirations so far}, to the pool, or fail them."""
    mine = tasks.filter(pk__in=list(had))
    back = {"bucket": None, "fence": F("fence") + 1, "expirations": F("expirations") + 1}
    if max(had.values()) >= most_expirations - 1:
        poison = mine.filter(expirations__gte=most_expirations - 1)
        outcome = sentence_for("bucket_expired", count=most_expirations)
        failed = {"state": State.FAILED, "finished_at": DbNow(), "outcome": outcome}
        update_and_record(poison, EventKind.FAILED, "", outcome, **failed, **back)
    mine.update(state=State.READY, **back)


def empty_bucket(using: str, bucket: int, fences: Mapping[str, int] | None = None) -> int:
    """Return tasks of a bucket to the pool, {key: fence}, or all of them; return their number."""
    connection, row = connections[using], Bucket.objects.using(using).filter(pk=bucket)

    def send() -> int:
        if fences is None:
            row.update(fence=F("fence") + 1)  # locks it
        had = statements.tasks_in_bucket(connection, bucket)
        mine = [task for task in had if fences is None or fences.get(task.key) == task.fence]
        return sum(statements.give_back(connection, bucket, batch) for batch in batched(mine, CHUNK))

    return in_transaction(using, send)
