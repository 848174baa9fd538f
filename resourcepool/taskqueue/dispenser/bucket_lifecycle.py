"""The life of a bucket: made when its worker first asks, filled, and taken back when it has expired (R3.5)."""

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from resourcepool.database.open_transaction import callers_blocks
from resourcepool.database.receipts import commit_once
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater, DbNow, short_transaction
from resourcepool.events import sentence_for
from resourcepool.exceptions import ClaimInTransaction
from resourcepool.leases.short_transactions import locked_row_error
from resourcepool.signals import EventKind
from resourcepool.taskqueue.abstract import update_and_record
from resourcepool.taskqueue.bulk_insert import BATCH
from resourcepool.taskqueue.dispenser import statements, validation
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue.dispenser.statements import DispenserSnapshot, Row

TRIES = 8  # if the bucket expires while it is being filled
WAIT = 10  # whole seconds that a statement waits for a locked row: longer than a suspended process keeps it
WHOLE_REBUILD = 60  # the same, where a rebuild may have the pool locked
SHORT_REBUILD = 1  # the same, by a worker that has got some tasks
AT_ONCE = 3  # of the TRIES: the dispenser may have to be made, and then the bucket; pauses follow
RECLAIM_BATCH = 100  # expired buckets in one transaction: after an outage all of them have expired
State = DispenserTask.State
Send = Callable[[DispenserSnapshot, int], list[Row] | None]
Answer = TypeVar("Answer")


def database() -> str:
    return str(router.db_for_write(DispenserTask))


def refuse_open_transaction(connection: BaseDatabaseWrapper) -> None:
    """Raise ClaimInTransaction if the caller has a transaction open: what is handed out could be undone."""
    blocks = callers_blocks(connection)
    is_open = connection.connection is not None
    autocommit = connection.autocommit if is_open else connection.settings_dict["AUTOCOMMIT"]
    if blocks or not (autocommit or connection.atomic_blocks):
        raise ClaimInTransaction(
            f"a transaction is open on database {connection.alias!r}: tasks assigned inside it would be invisible to"
            " others until the commit and undone by a rollback. Assign before transaction.atomic() (ATOMIC_REQUESTS"
            " opens one for every view); tasks_done() belongs inside"
        )


def assignment_transaction(using: str, *, wait: int = WAIT) -> AbstractContextManager[None]:
    """Open a transaction that the server ends after 5 s of silence, so that a dead process blocks no one."""
    return short_transaction(connections[using], wait=wait)


def in_transaction(using: str, send: Callable[[], Answer]) -> Answer:
    """Run ``send`` in such a transaction, which is committed once."""
    return commit_once(connections[using], send, wait=WAIT)


def make_dispenser(using: str, name: str) -> None:
    """Make the row of a dispenser, unless there is one."""
    rows, connection = Dispenser.objects.using(using), connections[using]
    # Looked for first: an insertion would wait for a rebuild, which has the row locked, and keep the next one waiting.
    if not retrying(connection, rows.filter(pk=name).exists):
        retrying(connection, partial(rows.bulk_create, [Dispenser(name=name)], ignore_conflicts=True))


def open_bucket(using: str, dispenser: str, name: str, holder: str, ttl: float) -> DispenserSnapshot:
    """Take back the dispenser's expired buckets, and make a live one of this name if there is none.

    Raises:
        RowLocked: a suspended process keeps the old one locked.
    """
    connection = connections[using]
    for turn in range(TRIES):
        if turn >= AT_ONCE:  # others of this name are just taking it back
            time.sleep(random.uniform(0, 0.02 * 2**turn))  # noqa: S311 (jitter, not a secret)
        seen = retrying(connection, partial(statements.read_snapshot, connection, dispenser, name))
        if seen is None:
            make_dispenser(using, dispenser)
            continue
        for start in range(0, len(seen.expired), RECLAIM_BATCH):
            reclaim_expired(using, seen.expired[start : start + RECLAIM_BATCH], seen.most_expirations)
        if seen.bucket is not None:
            # What was taken back may be before what was the first.
            return seen._replace(head=None) if seen.expired else seen
        made = Bucket(dispenser_id=dispenser, name=name, holder=holder, busy_before=DbLater(ttl))
        retrying(connection, partial(Bucket.objects.using(using).bulk_create, [made], ignore_conflicts=True))
    raise locked_row_error(using)


def reclaim_expired(using: str, buckets: list[int], most_expirations: int) -> int:
    """Return the tasks of expired buckets to the pool, or fail those that expired too often; return how many.

    A bucket that was touched since, or that another process is taking back, is left alone. A bucket with locked tasks
    stays, expired.
    """
    connection, rows = connections[using], Bucket.objects.using(using)
    skips = connection.features.has_select_for_update_skip_locked

    def send() -> int:
        expired = rows.filter(pk__in=buckets, busy_before__lte=DbNow())
        if skips:  # a worker may be suspended in the middle of an assignment: do not wait for it
            expired = rows.filter(pk__in=_keys(expired.select_for_update(skip_locked=True)))
        if not expired.update(fence=F("fence") + 1):
            return 0
        pks = _keys(expired)
        tasks = DispenserTask.objects.using(using).filter(bucket_id__in=pks, state=State.ASSIGNED)
        # Do not wait for tasks that a worker is finishing in a transaction of its own.
        free = tasks.select_for_update(skip_locked=True) if skips else tasks
        # By primary key, in the order in which everybody locks them.
        had = list(free.order_by("pk").values_list("pk", "expirations"))
        for start in range(0, len(had), BATCH):
            _return_expired(tasks, dict(had[start : start + BATCH]), most_expirations)
        left = set(tasks.values_list("bucket_id", flat=True))
        rows.filter(pk__in=set(pks) - left)._raw_delete(using)
        return len(had)

    def taken() -> int:
        with assignment_transaction(using):
            return send()

    return retrying(connection, taken)


def _keys(rows: Any) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _return_expired(tasks: Any, had: dict[int, int], most_expirations: int) -> None:
    """Return these tasks, {primary key: expirations so far}, which are locked."""
    mine = tasks.filter(pk__in=list(had))
    back = {"bucket": None, "fence": F("fence") + 1, "expirations": F("expirations") + 1}
    if max(had.values()) >= most_expirations - 1:
        poison = mine.filter(expirations__gte=most_expirations - 1)
        said = sentence_for("bucket_expired", count=most_expirations)
        over = {"state": State.FAILED, "finished_at": DbNow(), "outcome": said}
        update_and_record(poison, EventKind.FAILED, "", said, **over, **back)
    mine.update(state=State.READY, **back)


def fail_unreadable(using: str, refused: validation.RefusedKeys) -> None:
    """Fail tasks whose keys a factory has refused, unless another worker has them by now."""
    for row, error in refused:
        it = DispenserTask.objects.using(using).filter(pk=row.pk, fence=row.fence)
        said = sentence_for("key_unreadable", error=f"{type(error).__name__}: {error}"[:200])
        retrying(connections[using], partial(it.fail, said))


def find_bucket(using: str, dispenser: str, name: str, *, is_live: bool = False) -> int | None:
    """Return the bucket of this name; ``is_live``: unless it has expired."""
    rows = Bucket.objects.using(using).filter(dispenser_id=dispenser, name=name)
    rows = rows.filter(busy_before__gt=DbNow()) if is_live else rows
    found = retrying(connections[using], lambda: rows.values_list("pk", flat=True).first())
    return None if found is None else int(found)


def empty_bucket(using: str, bucket: int, *, is_removed: bool = False) -> int:
    """Return all tasks of a bucket to the pool, and remove it if wanted; return how many tasks it had."""
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
    """Have a bucket hold exactly ``limit`` tasks, if there are; return them in order.

    It keeps what it has, gets the first of the pool, and gives its last ones back if it has more.

    Raises:
        ClaimInTransaction: the caller has a transaction open.
        DatabaseUnavailable: it may have been filled; call it again.
    """
    refuse_open_transaction(connections[using])
    rows, is_paused = _fill(using, dispenser, bucket, holder, limit, ttl, [], after_rebuild=False)
    can_wait = not rows or ttl > 2 * SHORT_REBUILD
    if len(rows) < limit and not is_paused and can_wait and _are_there_more(using, dispenser):
        # A rebuild may have them locked, which changes their scores and is not to empty the pool for others.
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
    """Fill it once. With tasks ``had`` in hand nobody waits for a long rebuild: they would expire meanwhile."""
    wait = (SHORT_REBUILD if had else WHOLE_REBUILD) if after_rebuild else WAIT
    busy = (lambda: had) if had else None

    def send(seen: DispenserSnapshot, pk: int) -> list[Row] | None:
        # Sent again, it tells what the bucket has.
        sends = partial(_send, using, dispenser, limit, ttl, wait, after_rebuild, seen, pk)
        return retrying(connections[using], sends, busy=busy)

    seen, rows = write_to_bucket(using, dispenser, bucket, holder, ttl, send)
    return rows, seen.is_paused


def write_to_bucket(
    using: str, dispenser: str, name: str, holder: str, ttl: float, send: Send
) -> tuple[DispenserSnapshot, list[Row]]:
    """Have ``send`` write to the live bucket of this name; made anew when ``send`` finds it expired (None)."""
    for _ in range(TRIES):
        seen = open_bucket(using, dispenser, name, holder, ttl)
        assert seen.bucket is not None  # noqa: S101 (for the type checker)
        rows = send(seen, seen.bucket)
        if rows is not None:
            return seen, rows
    raise locked_row_error(using)


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
        # Another process of this name may have given something back, or ended it, since the look at what it had.
        return statements.tasks_in_bucket(connection, bucket) if rows else taken


def _are_there_more(using: str, dispenser: str) -> bool:
    rows = DispenserTask.objects.using(using).filter(dispenser_id=dispenser, state="ready")
    # In order, or PostgreSQL may look for them among all that are finished.
    return bool(retrying(connections[using], lambda: list(rows.in_order().values_list("pk")[:1])))
