"""Releases several rows of one line together: in one statement if there are no waiters, otherwise to the waiters."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from resourcepool.database.retry import Unsettled, retrying
from resourcepool.database.where import Where
from resourcepool.dialect import DbNow, short_transaction
from resourcepool.leases import verbs
from resourcepool.leases.table import Model, table_of
from resourcepool.waiting import handover, tickets
from resourcepool.waiting.allot import MAX_TRIES, WaitingTicket
from resourcepool.waiting.assignment import assign_quietly
from resourcepool.waiting.estimates import recent_waiters
from resourcepool.waiting.lease import release as release_one
from resourcepool.waiting.models import Ticket, line_name, selector_of
from resourcepool.waiting.tickets import Row

Rows = Sequence[Row]


def release(connection: BaseDatabaseWrapper, model: Model, rows: Rows, *, trusted_until: float) -> list[Any]:
    """Release up to ``verbs.BATCH`` rows of one line: hand them over to waiters, otherwise free them.

    Args:
        trusted_until: by this process's clock: no other process can have claimed any of the rows before.

    Returns:
        The keys of rows that were lost before.

    Raises:
        DatabaseUnavailable: it is unknown which of them were released.
    """
    selector = selector_of(model, rows[0][0])
    line = line_name(model, selector)
    if connection.in_atomic_block:
        # Not handed over here: a ticket locked until the commit would block its whole process.
        assign_free_rows = partial(assign_quietly, connection.alias, model, [selector])
        transaction.on_commit(assign_free_rows, using=connection.alias)
        freed = retrying(connection, partial(verbs.release_all, connection, model, rows, 0.0))
        return _lost(connection, model, rows, freed)
    left = rows
    is_awaited = bool(recent_waiters.until) and recent_waiters.is_likely(line, connection.alias)
    for _ in range(MAX_TRIES if len(rows) > 1 else 0):  # ``release_one`` needs fewer statements for one row
        left = _given_to_line(connection, model, left, selector) if is_awaited else left
        if not left:
            return []
        freed = _if_no_waiters(connection, model, left, line)
        if not freed or recent_waiters.until:
            recent_waiters.note(line, connection.alias, had_to_wait=not freed)
        if freed:
            return _lost(connection, model, left, freed)
        is_awaited = True  # there are waiters, or all rows are lost
    return [
        pk for pk, fence in left if not release_one(connection, model, pk, fence, trusted_until=trusted_until)
    ]


def _if_no_waiters(connection: BaseDatabaseWrapper, model: Model, rows: Rows, line: str) -> int:
    """Free the rows that are still held, and return their number; if there are waiters, change nothing and return 0."""
    texts = tickets.of(connection)
    unless = Where(f" AND NOT EXISTS (SELECT 1 FROM {texts.name} WHERE {texts.waits})", (line,))  # noqa: S608

    def settle() -> int:
        if not (released := len(rows) - len(_still_held(connection, model, rows))):
            raise Unsettled
        return released

    return retrying(connection, partial(verbs.release_all, connection, model, rows, 0.0, unless), settle=settle)


def _given_to_line(connection: BaseDatabaseWrapper, model: Model, rows: Rows, selector: str) -> Rows:
    """Give the rows to the waiters, in the order of the line; return the remaining rows."""
    left, failures = rows, 0
    read_line = partial(tickets.in_line, connection, model, len(rows) + handover.FIRST_TICKETS, selector)
    line = read_line()
    while line and left and failures < MAX_TRIES:
        ticket, *line = line
        chosen = left[: ticket.lacks]
        settle = partial(_was_given, connection, model, chosen, ticket)
        if retrying(connection, partial(give, connection, model, chosen, ticket), settle=settle):
            left = left[len(chosen) :]
        else:
            failures += 1  # a row is lost or out of service, or the ticket changed: it may still need rows
            line = read_line()
    return left


def give(connection: BaseDatabaseWrapper, model: Model, rows: Rows, ticket: WaitingTicket) -> bool:
    """Give all these rows to this ticket; if a row or the ticket changed, change nothing and return False."""
    if len(rows) == 1:
        return handover.give(connection, model, *rows[0], ticket)
    given = [(pk, fence + 1) for pk, fence in rows]
    claimable = Where(table_of(connection, model).claimable)
    span = ticket.grant_us / 1_000_000
    unchanged = Ticket.objects.using(connection.alias).filter(
        pk=ticket.pk, fence=ticket.fence, busy_before__gt=DbNow()
    )
    holds = [*ticket.holds, *given]
    collected, waits = tickets.written(holds), len(holds) < ticket.count
    with short_transaction(connection):
        passed = verbs.hand_over_all(connection, model, rows, to=ticket.holder, ttl=span, where=claimable)
        done = passed == len(rows) and bool(
            unchanged.update(collected=collected, is_waiting=waits, fence=F("fence") + 1)
        )
        transaction.set_rollback(not done, using=connection.alias)
    if done:
        handover.note_assignment(line_name(model, ticket.selector), connection.alias, ticket.address, ticket.pk)
    return done


def _was_given(connection: BaseDatabaseWrapper, model: Model, rows: Rows, ticket: WaitingTicket) -> bool:
    now = _read(connection, model, rows)
    if not all(now.get(pk) == (fence + 1, ticket.holder) for pk, fence in rows):
        raise Unsettled
    return True


def _lost(connection: BaseDatabaseWrapper, model: Model, rows: Rows, freed: int) -> list[Any]:
    """Return the keys of the rows that were lost before, after ``freed`` of them were freed."""
    if freed == len(rows):
        return []
    now = _read(connection, model, rows)
    return [pk for pk, fence in rows if now.get(pk) != (fence + 1, "")]


def _still_held(connection: BaseDatabaseWrapper, model: Model, rows: Rows) -> list[Any]:
    """Return the keys of the rows whose fence is unchanged."""
    now = _read(connection, model, rows)
    return [pk for pk, fence in rows if now.get(pk, (None,))[0] == fence]


def _read(connection: BaseDatabaseWrapper, model: Model, rows: Rows) -> dict[Any, tuple[Any, ...]]:
    """Return {key: (fence, holder)} of the rows now."""
    queryset = verbs.rows_of(connection, model).filter(pk__in=[pk for pk, _ in rows])
    now = retrying(connection, lambda: list(queryset.values_list("pk", "fence", "holder")))
    return {pk: (fence, holder) for pk, fence, holder in now}
