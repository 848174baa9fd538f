"""The life of a bucket: it is made when its worker first asks, and taken back when it has expired."""

import random
import time
from contextlib import AbstractContextManager
from functools import partial

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater, DbNow, brief_transaction
from resourcepool.events import say
from resourcepool.exceptions import ClaimInTransaction
from resourcepool.leases.short_transactions import locked_row
from resourcepool.signals import What
from resourcepool.taskqueue.abstract import changed
from resourcepool.taskqueue.dispenser import given, statements
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.waiting.request import callers_blocks

TRIES = 8  # made anew after it has expired in the hands of the one who asks for it
WAIT = (
    10  # whole seconds that a statement waits for a locked row: more than a process that stands still keeps it
)
WHOLE_REBUILD = 60  # the same, where a rebuild may have the pool locked
AT_ONCE = 3  # of these: the dispenser may have to be made, and then the bucket; pauses follow
State = DispenserTask.State


def database() -> str:
    """Return the alias of the database of the dispensers."""
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


def limited(using: str, *, wait: int = WAIT) -> AbstractContextManager[None]:
    """Open a transaction whose process keeps others waiting for seconds at most when it stands still or is cut off.

    MariaDB and PostgreSQL end it after 5 s of silence.
    """
    return brief_transaction(connections[using], wait=wait)


def make_dispenser(using: str, name: str) -> None:
    """Make the row of a dispenser, unless there is one."""
    make = partial(Dispenser.objects.using(using).bulk_create, [Dispenser(name=name)], ignore_conflicts=True)
    retrying(connections[using], make)


def opened(using: str, dispenser: str, name: str, holder: str, ttl: float) -> statements.Seen:
    """Take back the dispenser's expired buckets, and see to it that there is a live one of this name.

    Raises:
        RowLocked: a process that stands still keeps the old one locked.
    """
    connection = connections[using]
    for turn in range(TRIES):
        if turn >= AT_ONCE:  # others of this name are just taking it back
            time.sleep(random.uniform(0, 0.02 * 2**turn))  # noqa: S311 (jitter, not a secret)
        seen = retrying(connection, partial(statements.look, connection, dispenser, name))
        if seen is None:
            make_dispenser(using, dispenser)
            continue
        for pk in seen.expired:
            take_back(using, pk, seen.most_expirations)
        if seen.bucket is not None:
            # What was taken back may be before what was the first.
            return seen._replace(head=None) if seen.expired else seen
        made = Bucket(dispenser_id=dispenser, name=name, holder=holder, busy_before=DbLater(ttl))
        retrying(connection, partial(Bucket.objects.using(using).bulk_create, [made], ignore_conflicts=True))
    raise locked_row(using)


def take_back(using: str, bucket: int, most_expirations: int) -> int:
    """Return the tasks of an expired bucket to the pool, but for those that have expired too often; returns how many.

    A bucket that has been touched since, or that another process is just taking back, is left alone. One in which tasks
    are locked stays, expired.
    """
    connection = connections[using]
    skips = connection.features.has_select_for_update_skip_locked
    expired = Bucket.objects.using(using).filter(pk=bucket, busy_before__lte=DbNow())

    def once() -> int:
        with limited(using):
            if skips and not expired.select_for_update(skip_locked=True).values_list("pk"):
                return 0  # its worker may stand still in the middle of an assignment: nobody waits for that
            if not expired.update(fence=F("fence") + 1):
                return 0
            tasks = DispenserTask.objects.using(using).filter(bucket_id=bucket, state=State.ASSIGNED)
            # What a worker is finishing in a transaction of its own is left until that ends: nobody waits for it.
            free = tasks.select_for_update(skip_locked=True) if skips else tasks
            # By primary key, in the order in which everybody locks them.
            had = dict(free.order_by("pk").values_list("pk", "expirations"))
            mine, failed = tasks.filter(pk__in=list(had)), 0
            back = {"bucket": None, "fence": F("fence") + 1, "expirations": F("expirations") + 1}
            if max(had.values(), default=0) >= most_expirations - 1:
                poison = mine.filter(expirations__gte=most_expirations - 1)
                said = say("bucket_expired", count=most_expirations)
                over = {"state": State.FAILED, "finished_at": DbNow(), "outcome": said}
                failed = changed(poison, What.FAILED, "", said, **over, **back)
            returned = mine.update(state=State.READY, **back)
            if not tasks.exists():
                Bucket.objects.using(using).filter(pk=bucket)._raw_delete(using)
            return int(failed + returned)

    return retrying(connection, once)


def fail_unreadable(using: str, refused: given.Refused) -> None:
    """Fail tasks whose keys a factory has refused, unless somebody else has them by now."""
    for row, error in refused:
        it = DispenserTask.objects.using(using).filter(pk=row.pk, fence=row.fence)
        said = say("key_unreadable", error=f"{type(error).__name__}: {error}"[:200])
        retrying(connections[using], partial(it.fail, said))


def live(using: str, dispenser: str, name: str) -> int | None:
    """Return the primary key of the live bucket of this name."""
    rows = Bucket.objects.using(using).filter(dispenser_id=dispenser, name=name, busy_before__gt=DbNow())
    found = retrying(connections[using], lambda: rows.values_list("pk", flat=True).first())
    return None if found is None else int(found)


def emptied(using: str, bucket: int, *, is_removed: bool = False) -> int:
    """Return all that a bucket has to the pool, and remove it if wanted; returns how many tasks it had."""
    connection = connections[using]
    row = Bucket.objects.using(using).filter(pk=bucket)

    def once() -> int:
        with limited(using):
            row.update(fence=F("fence") + 1)  # locks it
            rows = statements.held(connection, bucket)
            returned = statements.give_back(connection, bucket, rows) if rows else 0
            if is_removed:
                row._raw_delete(using)
            return returned

    return retrying(connection, once)
