"""The life of a bucket: created when its worker first asks for tasks, filled, and reclaimed when it has expired."""

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.open_transaction import refuse_callers_transaction
from resourcepool.db.receipts import commit_once
from resourcepool.db.retry import retrying
from resourcepool.db.rows import batched, ensure_row
from resourcepool.db.transactions import row_locked, short_transaction
from resourcepool.events import sentence_for
from resourcepool.signals import EventKind
from resourcepool.taskqueue.abstract import update_and_record
from resourcepool.taskqueue.bulk_insert import BATCH
from resourcepool.taskqueue.dispenser import statements, validation
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue.dispenser.statements import DispenserSnapshot, Row

MAX_TRIES = 8  # the bucket may expire while it is filled
TRIES_WITHOUT_PAUSE = 3  # the dispenser may have to be created, and then the bucket
WAIT = 10  # seconds, integer, to wait for a locked row: longer than a suspended process can keep it locked
WHOLE_REBUILD = 60  # the same, if a rebuild may have locked the pool
SHORT_REBUILD = 1  # the same, for a worker that has got some tasks already
RECLAIM_BATCH = 100  # expired buckets in one transaction: after an outage all of them have expired
State = DispenserTask.State
Send = Callable[[DispenserSnapshot, int], list[Row] | None]
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


def assignment_transaction(using: str, *, wait: int = WAIT) -> AbstractContextManager[None]:
    """Open a transaction that the database server ends after 5 s of idleness, so that a crashed process blocks none."""
    return short_transaction(connections[using], wait=wait)


def in_transaction(using: str, send: Callable[[], Answer]) -> Answer:
    """Run ``send`` in such a transaction, and commit exactly once."""
    return commit_once(connections[using], send, wait=WAIT)


def make_dispenser(using: str, name: str) -> None:
    """Create the row of a dispenser if it does not exist."""
    retrying(connections[using], partial(ensure_row, Dispenser, using, name))


def open_bucket(using: str, dispenser: str, name: str, holder: str, ttl: float) -> DispenserSnapshot:
    """Reclaim the dispenser's expired buckets, and create a bucket of this name unless a live one exists.

    Raises:
        RowLocked: a suspended process keeps the old bucket locked.
    """
    connection = connections[using]
    for attempt in range(MAX_TRIES):
        if attempt >= TRIES_WITHOUT_PAUSE:  # other processes are reclaiming a bucket of this name
            time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311 (jitter, not a secret)
        seen = retrying(connection, partial(statements.read_snapshot, connection, dispenser, name))
        if seen is None:
            make_dispenser(using, dispenser)
            continue
        for expired in batched(seen.expired, RECLAIM_BATCH):
            reclaim_expired(using, expired, seen.most_expirations)
        if seen.bucket is not None:
            # A reclaimed task may come before the former first one.
            return seen._replace(head=None) if seen.expired else seen
        row = Bucket(dispenser_id=dispenser, name=name, holder=holder, busy_before=DbLater(ttl))
        retrying(connection, partial(Bucket.objects.using(using).bulk_create, [row], ignore_conflicts=True))
    raise row_locked(using)


def reclaim_expired(using: str, buckets: list[int], most_expirations: int) -> int:
    """Return the tasks of expired buckets to the pool, or fail tasks that expired too often; return how many.

    Skips buckets that were touched since, or that another process is reclaiming. A bucket with locked tasks stays
    expired.
    """
    connection, rows = connections[using], Bucket.objects.using(using)
    skips = connection.features.has_select_for_update_skip_locked

    def send() -> int:
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
        for batch in batched(had, BATCH):
            _return_expired(tasks, dict(batch), most_expirations)
        left = set(tasks.values_list("bucket_id", flat=True))
        rows.filter(pk__in=set(pks) - left)._raw_delete(using)
        return len(had)

    def send_in_transaction() -> int:
        with assignment_transaction(using):
            return send()

    return retrying(connection, send_in_transaction)


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


def fail_unreadable(using: str, refused: validation.RefusedKeys) -> None:
    """Fail tasks whose keys a factory has refused, unless they were assigned again meanwhile."""
    for row, error in refused:
        task = DispenserTask.objects.using(using).filter(pk=row.pk, fence=row.fence)
        outcome = sentence_for("key_unreadable", error=f"{type(error).__name__}: {error}"[:200])
        retrying(connections[using], partial(task.fail, outcome))


def find_bucket(using: str, dispenser: str, name: str, *, is_live: bool = False) -> int | None:
    """Return the primary key of the bucket of this name; ``is_live``: only if it has not expired."""
    rows = Bucket.objects.using(using).filter(dispenser_id=dispenser, name=name)
    rows = rows.filter(busy_before__gt=DbNow()) if is_live else rows
    pk = retrying(connections[using], lambda: rows.values_list("pk", flat=True).first())
    return None if pk is None else int(pk)


def empty_bucket(using: str, bucket: int, *, is_removed: bool = False) -> int:
    """Return all tasks of a bucket to the pool, and remove the bucket if ``is_removed``; return the task count."""
    connection = connections[using]
    row = Bucket.objects.using(using).filter(pk=bucket)

    def send() -> int:
        row.update(fence=F("fence") + 1)  # locks it
        had = statements.tasks_in_bucket(connection, bucket)
        returned = statements.give_back(connection, bucket, had) if had else 0
        if is_removed:
            row._raw_delete(using)
        return returned

    return in_transaction(using, send)


def fill(using: str, dispenser: str, bucket: str, holder: str, limit: int, ttl: float) -> list[Row]:
    """Fill a bucket to ``limit`` tasks, as far as the pool has them; return its tasks in order.

    The bucket keeps its tasks and gets the first ones of the pool. If it has more than ``limit``, the last ones return.

    Raises:
        ClaimInTransaction: the caller has an open transaction.
        DatabaseUnavailable: the bucket may have been filled; call it again.
    """
    refuse_assignment_in_transaction(connections[using])
    rows, is_paused = _fill(using, dispenser, bucket, holder, limit, ttl, [], after_rebuild=False)
    can_wait = not rows or ttl > 2 * SHORT_REBUILD
    if len(rows) < limit and not is_paused and can_wait and _are_there_more(using, dispenser):
        # A rebuild may have locked the remaining tasks: wait for it instead of returning too few.
        rows, _ = _fill(using, dispenser, bucket, holder, limit, ttl, rows, after_rebuild=True)
    return rows


def _fill(
    using: str,
    dispenser: str,
    bucket: str,
    holder: str,
    limit: int,
    ttl: float,
    had: list[Row],
    *,
    after_rebuild: bool,
) -> tuple[list[Row], bool]:
    """Fill a bucket once. A worker that ``had`` tasks waits only shortly for a rebuild: they could expire meanwhile."""
    wait = (SHORT_REBUILD if had else WHOLE_REBUILD) if after_rebuild else WAIT
    busy = (lambda: had) if had else None

    def send(seen: DispenserSnapshot, pk: int) -> list[Row] | None:
        # Safe to send again: a full bucket is only read.
        sends = partial(_send, using, dispenser, limit, ttl, wait, after_rebuild, seen, pk)
        return retrying(connections[using], sends, busy=busy)

    seen, rows = write_to_bucket(using, dispenser, bucket, holder, ttl, send)
    return rows, seen.is_paused


def write_to_bucket(
    using: str, dispenser: str, name: str, holder: str, ttl: float, send: Send
) -> tuple[DispenserSnapshot, list[Row]]:
    """Let ``send`` write to the live bucket of this name; create it again if ``send`` returns None (expired)."""
    for _ in range(MAX_TRIES):
        seen = open_bucket(using, dispenser, name, holder, ttl)
        assert seen.bucket is not None  # noqa: S101 (for the type checker)
        rows = send(seen, seen.bucket)
        if rows is not None:
            return seen, rows
    raise row_locked(using)


def _send(
    using: str,
    dispenser: str,
    limit: int,
    ttl: float,
    wait: int,
    after_rebuild: bool,
    seen: DispenserSnapshot,
    bucket: int,
) -> list[Row] | None:
    connection = connections[using]
    with assignment_transaction(using, wait=wait):
        if after_rebuild:
            list(Dispenser.objects.using(using).filter(pk=dispenser).select_for_update().values_list("pk"))
        if not statements.touch(connection, bucket, ttl):
            return None
        rows = statements.tasks_in_bucket(connection, bucket)
        if len(rows) > limit:
            statements.give_back(connection, bucket, rows[limit:])
            return rows[:limit]
        if len(rows) == limit or seen.is_paused:
            return rows
        head = None if after_rebuild else seen.head  # the rebuild may have changed the scores since
        more = statements.lock_first_ready(connection, dispenser, limit - len(rows), head)
        if not more:
            return rows
        taken = statements.take(connection, bucket, more)
        # Another process of this name may have returned or finished tasks since they were read.
        return statements.tasks_in_bucket(connection, bucket) if rows else taken


def _are_there_more(using: str, dispenser: str) -> bool:
    rows = DispenserTask.objects.using(using).filter(dispenser_id=dispenser, state="ready")
    # Without an order PostgreSQL may search all finished tasks.
    return bool(retrying(connections[using], lambda: list(rows.in_order().values_list("pk")[:1])))
