"""Gives up several rows of one line together: in one statement when nobody waits, otherwise to those in line."""

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
    """Give up these rows, up to ``verbs.BATCH`` of one line: to the first in line, otherwise they are free.

    Args:
        trusted_until: the time, by this process's clock, before which nobody else can have claimed any of them.

    Returns:
        The keys of those that were lost before.

    Raises:
        DatabaseUnavailable: it is unknown which of them were given up.
    """
    selector = selector_of(model, rows[0][0])
    line = line_name(model, selector)
    if connection.in_atomic_block:
        # A ticket that stays locked until the commit would hold up its whole process.
        assign_free_rows = partial(assign_quietly, connection.alias, model, [selector])
        transaction.on_commit(assign_free_rows, using=connection.alias)
        freed = retrying(connection, partial(verbs.release_all, connection, model, rows, 0.0))
        return _lost(connection, model, rows, freed)
    left = rows
    is_awaited = bool(recent_waiters.until) and recent_waiters.is_likely(line, connection.alias)
    for _ in range(MAX_TRIES if len(rows) > 1 else 0):  # one row needs fewer statements by itself
        left = _given_to_line(connection, model, left, selector) if is_awaited else left
        if not left:
            return []
        freed = _if_no_waiters(connection, model, left, line)
        if not freed or recent_waiters.until:
            recent_waiters.note(line, connection.alias, had_to_wait=not freed)
        if freed:
            return _lost(connection, model, left, freed)
        is_awaited = True  # or all of them are lost
    return [
        pk for pk, fence in left if not release_one(connection, model, pk, fence, trusted_until=trusted_until)
    ]


def _if_no_waiters(connection: BaseDatabaseWrapper, model: Model, rows: Rows, line: str) -> int:
    """Free the rows that are still held, and return how many; if anybody waits, change nothing and return 0."""
    texts = tickets.of(connection)
    unless = Where(f" AND NOT EXISTS (SELECT 1 FROM {texts.name} WHERE {texts.waits})", (line,))  # noqa: S608

    def settle() -> int:
        if not (gone := len(rows) - len(_still(connection, model, rows))):
            raise Unsettled
        return gone

    return retrying(connection, partial(verbs.release_all, connection, model, rows, 0.0, unless), settle=settle)


def _given_to_line(connection: BaseDatabaseWrapper, model: Model, rows: Rows, selector: str) -> Rows:
    """Give the rows to those in line, in its order; return the rows that nobody took."""
    left, in_vain = rows, 0
    look = partial(tickets.in_line, connection, model, len(rows) + handover.FIRST_TICKETS, selector)
    line = look()
    while line and left and in_vain < MAX_TRIES:
        ticket, *line = line
        chosen = left[: ticket.lacks]
        settle = partial(_was_given, connection, model, chosen, ticket)
        if retrying(connection, partial(give, connection, model, chosen, ticket), settle=settle):
            left = left[len(chosen) :]
        else:
            in_vain += 1  # one of the rows is lost or out of service, or the ticket has changed: it may lack some still
            line = look()
    return left


def give(connection: BaseDatabaseWrapper, model: Model, rows: Rows, ticket: WaitingTicket) -> bool:
    """Give all these rows to this ticket; if one of them or the ticket has changed, change nothing, return False."""
    if len(rows) == 1:
        return handover.give(connection, model, *rows[0], ticket)
    given = [(pk, fence + 1) for pk, fence in rows]
    claimable = Where(table_of(connection, model).claimable)
    span = ticket.grant_us / 1_000_000
    mine = Ticket.objects.using(connection.alias).filter(
        pk=ticket.pk, fence=ticket.fence, busy_before__gt=DbNow()
    )
    holds = [*ticket.holds, *given]
    collected, waits = tickets.written(holds), len(holds) < ticket.count
    with short_transaction(connection):
        passed = verbs.hand_over_all(connection, model, rows, to=ticket.holder, ttl=span, where=claimable)
        done = passed == len(rows) and bool(
            mine.update(collected=collected, is_waiting=waits, fence=F("fence") + 1)
        )
        transaction.set_rollback(not done, using=connection.alias)
    if done:
        handover.note_assignment(line_name(model, ticket.selector), connection.alias, ticket.address, ticket.pk)
    return done


def _was_given(connection: BaseDatabaseWrapper, model: Model, rows: Rows, ticket: WaitingTicket) -> bool:
    found = _found(connection, model, rows)
    if not all(found.get(pk) == (fence + 1, ticket.holder) for pk, fence in rows):
        raise Unsettled
    return True


def _lost(connection: BaseDatabaseWrapper, model: Model, rows: Rows, freed: int) -> list[Any]:
    """Return the keys of the rows that were lost before, when ``freed`` of them have just been freed."""
    if freed == len(rows):
        return []
    found = _found(connection, model, rows)
    return [pk for pk, fence in rows if found.get(pk) != (fence + 1, "")]


def _still(connection: BaseDatabaseWrapper, model: Model, rows: Rows) -> list[Any]:
    """Return the keys of the rows that are still under the same fence."""
    found = _found(connection, model, rows)
    return [pk for pk, fence in rows if found.get(pk, (None,))[0] == fence]


def _found(connection: BaseDatabaseWrapper, model: Model, rows: Rows) -> dict[Any, tuple[Any, ...]]:
    these = verbs.rows_of(connection, model).filter(pk__in=[pk for pk, _ in rows])
    found = retrying(connection, lambda: list(these.values_list("pk", "fence", "holder")))
    return {pk: (fence, holder) for pk, fence, holder in found}
