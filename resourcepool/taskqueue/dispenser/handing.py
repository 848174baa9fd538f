"""Hands tasks to a worker: one transaction that begins by locking the worker's bucket (R3.5)."""

from collections.abc import Callable
from functools import partial

from django.db import connections

from resourcepool.database.retry import retrying
from resourcepool.leases.short_transactions import locked_row
from resourcepool.taskqueue.dispenser import statements
from resourcepool.taskqueue.dispenser.buckets import (
    TRIES,
    WAIT,
    WHOLE_REBUILD,
    limited,
    opened,
    refuse_open_transaction,
)
from resourcepool.taskqueue.dispenser.models import Dispenser, DispenserTask
from resourcepool.taskqueue.dispenser.statements import Row, Seen

Send = Callable[[Seen, int], list[Row] | None]


def fill(using: str, dispenser: str, bucket: str, holder: str, limit: int, ttl: float) -> list[Row]:
    """Have a bucket hold exactly ``limit`` tasks, if there are; return them in order.

    It keeps what it has, gets the first of the pool, and gives its last ones back if it has more.

    Raises:
        ClaimInTransaction: the caller has a transaction open.
        DatabaseUnavailable: it may have been filled; call it again.
    """
    refuse_open_transaction(connections[using])
    rows, is_paused = _fill(using, dispenser, bucket, holder, limit, ttl, after_rebuild=False)
    if len(rows) < limit and not is_paused and _are_there_more(using, dispenser):
        # A rebuild may have them locked, which changes their scores and is not to empty the pool for others.
        rows, _ = _fill(using, dispenser, bucket, holder, limit, ttl, after_rebuild=True)
    return rows


def _fill(
    using: str, dispenser: str, bucket: str, holder: str, limit: int, ttl: float, *, after_rebuild: bool
) -> tuple[list[Row], bool]:
    send = partial(_send, using, dispenser, limit, ttl, after_rebuild)
    seen, rows = in_bucket(using, dispenser, bucket, holder, ttl, send)
    return rows, seen.is_paused


def in_bucket(
    using: str, dispenser: str, name: str, holder: str, ttl: float, send: Send
) -> tuple[Seen, list[Row]]:
    """Have ``send`` write to the live bucket of this name; made anew when ``send`` finds it expired (None)."""
    for _ in range(TRIES):
        seen = opened(using, dispenser, name, holder, ttl)
        assert seen.bucket is not None  # noqa: S101 (for the type checker)
        rows = retrying(connections[using], partial(send, seen, seen.bucket))
        if rows is not None:
            return seen, rows
    raise locked_row(using)


def _send(
    using: str, dispenser: str, limit: int, ttl: float, after_rebuild: bool, seen: Seen, bucket: int
) -> list[Row] | None:
    connection = connections[using]
    with limited(using, wait=WHOLE_REBUILD if after_rebuild else WAIT):
        if after_rebuild:
            list(Dispenser.objects.using(using).filter(pk=dispenser).select_for_update().values_list("pk"))
        if not statements.touch(connection, bucket, ttl):
            return None
        rows = statements.held(connection, bucket)
        if len(rows) > limit:
            statements.give_back(connection, bucket, rows[limit:])
            return rows[:limit]
        if len(rows) == limit or seen.is_paused:
            return rows
        head = None if after_rebuild else seen.head  # the rebuild may have changed the scores since
        more = statements.first(connection, dispenser, limit - len(rows), head)
        if not more:
            return rows
        taken = statements.take(connection, bucket, more)
        # Another process of this name may have given something back, or ended it, since the look at what it had.
        return statements.held(connection, bucket) if rows else taken


def _are_there_more(using: str, dispenser: str) -> bool:
    rows = DispenserTask.objects.using(using).filter(dispenser_id=dispenser, state="ready")
    # In order, or PostgreSQL may look for them among all that are finished.
    return bool(retrying(connections[using], lambda: list(rows.in_order().values_list("pk")[:1])))
