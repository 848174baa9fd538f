"""Releases rows: to the first waiters in line if there are any, otherwise they become free."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow
from resourcepool.db.dialect.statement import Where
from resourcepool.db.retry import Unsettled, retrying
from resourcepool.db.transactions import short_transaction
from resourcepool.leases import verbs
from resourcepool.leases.models import Model, table_of
from resourcepool.leases.statements import change, key
from resourcepool.waiting import handover, tickets
from resourcepool.waiting.assignment import MAX_TRIES, allot, assign_quietly
from resourcepool.waiting.handover import FIRST_TICKETS, line_of
from resourcepool.waiting.models import Ticket, selector_of
from resourcepool.waiting.pacing import Pacing, pacing_of
from resourcepool.waiting.tickets import Row, WaitingTicket

MAX_READS = 5  # of the first tickets, while others are given rows at the same moment

Rows = Sequence[Row]


def release(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, *, trusted_until: float
) -> bool:
    """Release a row: hand it over to the first matching waiter, otherwise free it. False: it was lost before.

    Args:
        trusted_until: by this process's clock: no other process can have claimed the row before.

    Raises:
        DatabaseUnavailable: it is unknown whether the release took effect.
    """
    if connection.in_atomic_block:
        _assign_after_commit(connection, model, pk)
        return verbs.release(connection, model, pk, fence, 0.0, trusted_until=trusted_until)
    send = partial(release_once, connection, model, pk, fence)
    settle = partial(_settle, connection, model, pk, fence, trusted_until)
    return retrying(connection, send, settle=settle)


def release_once(connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int) -> bool:
    """``release`` outside of transactions and without retries."""
    row, line_name = (connection, model, pk, fence), line_of(model, pk)
    pacing = pacing_of(line_name, connection.alias)
    if pacing.awaited_until <= monotonic() and _free_if_nobody_waits(*row, line_name, pacing):
        return True
    if handover.give_in_line(*row, line_name):
        return True
    for _ in range(MAX_READS):
        line = tickets.in_line(connection, model, FIRST_TICKETS, selector_of(model, pk))
        pacing.found_line(len(line), monotonic())
        takes_any = _first_that_take_any(model, line)
        if takes_any and handover.give_to_first(*row, line_name, takes_any):
            return True
        if not line and _free_if_nobody_waits(*row, line_name, pacing):
            return True
        if len(takes_any) < len(line):
            break
    return give_to_first_match(*row) or verbs.release_all(connection, model, [(pk, fence)], 0.0) == 1


def _first_that_take_any(model: Model, line: Sequence[WaitingTicket]) -> Sequence[WaitingTicket]:
    """Return the tickets that wait for one row, any of their line, up to the first other ticket."""
    for place, ticket in enumerate(line):
        if ticket.count > 1 or not (model.line_per_name or ticket.selector == "{}"):
            return line[:place]
    return line


def assign_released(using: str, model: Model, pks: Sequence[Any]) -> None:
    """Assign rows to waiters after they were released together; ignores errors, because the waiters scan themselves."""
    assign_quietly(using, model, {selector_of(model, pk) for pk in pks})


def _assign_after_commit(connection: BaseDatabaseWrapper, model: Model, pk: Any) -> None:
    # Not handed over before: a ticket locked until the commit would block its whole process.
    transaction.on_commit(partial(assign_released, connection.alias, model, [pk]), using=connection.alias)


def _free_if_nobody_waits(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, line: str, pacing: Pacing
) -> bool:
    """Free the row; if there are waiters, or the row is lost, change nothing and return False."""
    texts, asked_at = handover.of(connection, model), monotonic()
    params = {"pk": key(connection, model, pk), "fence": fence, "pool": line}
    if texts.free_without_asking and pacing.empty_until > asked_at:
        return dialect.run(connection, texts.free_without_asking, params, dialect.row_count) > 0
    done = dialect.run(connection, texts.free_if_nobody_waits, params, dialect.row_count) > 0
    pacing.found_none(asked_at) if done else pacing.found_waiters(monotonic())
    return done


def give_to_first_match(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, *, if_free: bool = False
) -> bool:
    """Give the row to the first matching waiter; if there is none, change nothing and return False."""
    selector, rereads = selector_of(model, pk), MAX_TRIES
    for most in (FIRST_TICKETS, tickets.MAX_TICKETS):
        line = tickets.in_line(connection, model, most, selector)
        is_whole = len(line) < most
        while line:
            wanted = {ticket.selector for ticket in line}
            selectors = handover.matching_selectors(connection, model, (pk, fence), wanted)
            given = allot(line, {selector: [pk] for selector in selectors})
            if not given:
                break
            ticket = next(ticket for ticket in line if ticket.pk in given)
            if handover.give(connection, model, pk, fence, ticket, if_free=if_free):
                return True
            # The ticket has just got another row, or has left. A ticket for several rows may still need this one.
            if ticket.lacks > 1 and (rereads := rereads - 1) >= 0:
                line = tickets.in_line(connection, model, most, selector)
            else:
                line = line[line.index(ticket) + 1 :]
        if is_whole:
            break
    return False


def _settle(connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, trusted_until: float) -> bool:
    """Find out whether a release whose reply was lost took effect; see ``verbs.settle_release``."""
    given = tickets.written([(pk, fence + 1)])
    to_one, to_several = Q(granted=given), Q(collected__contains=given[1:-1])
    line = Ticket.objects.using(connection.alias).filter(pool=line_of(model, pk))
    was_handed_over = line.filter(to_one | to_several)
    is_back = verbs.settle_release(connection, model, pk, fence, trusted_until)
    return bool(is_back) or was_handed_over.exists()


# Several rows of one line together


def release_many(
    connection: BaseDatabaseWrapper, model: Model, rows: Rows, *, trusted_until: float
) -> list[Any]:
    """Release up to ``verbs.BATCH`` rows of one line, in one statement if there are no waiters.

    Args:
        trusted_until: by this process's clock: no other process can have claimed any of the rows before.

    Returns:
        The keys of rows that were lost before.

    Raises:
        DatabaseUnavailable: it is unknown which of them were released.
    """
    if connection.in_atomic_block:
        _assign_after_commit(connection, model, rows[0][0])
        freed = retrying(connection, partial(verbs.release_all, connection, model, rows, 0.0))
        return _lost(connection, model, rows, freed)
    left = rows
    is_awaited = pacing_of(line_of(model, rows[0][0]), connection.alias).awaited_until > monotonic()
    for _ in range(MAX_TRIES if len(rows) > 1 else 0):  # ``release`` needs fewer statements for one row
        left = _give_to_line(connection, model, left) if is_awaited else left
        if not left:
            return []
        if freed := _free_all_if_nobody_waits(connection, model, left):
            return _lost(connection, model, left, freed)
        is_awaited = True  # there are waiters, or all rows are lost
    return [pk for pk, fence in left if not release(connection, model, pk, fence, trusted_until=trusted_until)]


def _free_all_if_nobody_waits(connection: BaseDatabaseWrapper, model: Model, rows: Rows) -> int:
    """Free the rows that are still held, and return their number; if there are waiters, change nothing and return 0."""
    texts, line, asked_at = tickets.of(connection), line_of(model, rows[0][0]), monotonic()
    unless = Where(f" AND NOT EXISTS (SELECT 1 FROM {texts.name} WHERE {texts.waits})", (line,))  # noqa: S608

    def settle() -> int:
        now = _read(connection, model, rows)
        if not (released := len([pk for pk, fence in rows if now.get(pk, (None,))[0] != fence])):
            raise Unsettled
        return released

    send = partial(verbs.release_all, connection, model, rows, 0.0, unless)
    freed = retrying(connection, send, settle=settle)
    pacing = pacing_of(line, connection.alias)
    pacing.found_none(asked_at) if freed else pacing.found_waiters(monotonic())
    return int(freed)


def _give_to_line(connection: BaseDatabaseWrapper, model: Model, rows: Rows) -> Rows:
    """Give the rows to the waiters, in the order of the line; return the remaining rows."""
    left, failures = rows, 0
    read_line = partial(
        tickets.in_line, connection, model, len(rows) + FIRST_TICKETS, selector_of(model, rows[0][0])
    )
    line = read_line()
    while line and left and failures < MAX_TRIES:
        ticket, *line = line
        chosen = left[: ticket.lacks]
        settle = partial(_was_given, connection, model, chosen, ticket)
        if retrying(connection, partial(give_several, connection, model, chosen, ticket), settle=settle):
            left = left[len(chosen) :]
        else:
            failures += 1  # a row is lost or out of service, or the ticket changed: it may still need rows
            line = read_line()
    return left


def give_several(connection: BaseDatabaseWrapper, model: Model, rows: Rows, ticket: WaitingTicket) -> bool:
    """Give all these rows to this ticket; if a row or the ticket changed, change nothing and return False."""
    if len(rows) == 1:
        return handover.give(connection, model, *rows[0], ticket)
    holds = [*ticket.holds, *((pk, fence + 1) for pk, fence in rows)]
    claimable, span = Where(table_of(connection, model).claimable), ticket.grant_us / 1_000_000
    unchanged = Ticket.objects.using(connection.alias).filter(
        pk=ticket.pk, fence=ticket.fence, busy_before__gt=DbNow()
    )
    collected, waits = tickets.written(holds), len(holds) < ticket.count
    with short_transaction(connection):
        passed = change(connection, model, "hand over", rows, span, ticket.holder, where=claimable)
        done = passed == len(rows) and bool(
            unchanged.update(collected=collected, is_waiting=waits, fence=F("fence") + 1)
        )
        transaction.set_rollback(not done, using=connection.alias)
    if done:
        handover.note_given(connection.alias, line_of(model, rows[0][0]), ticket.pk, ticket.address)
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


def _read(connection: BaseDatabaseWrapper, model: Model, rows: Rows) -> dict[Any, tuple[Any, ...]]:
    """Return {key: (fence, holder)} of the rows now."""
    queryset = verbs.rows_of(connection, model).filter(pk__in=[pk for pk, _ in rows])
    now = retrying(connection, lambda: list(queryset.values_list("pk", "fence", "holder")))
    return {pk: (fence, holder) for pk, fence, holder in now}
