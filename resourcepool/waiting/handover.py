"""Hands one row over to a waiter: row and ticket change together, or neither does."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from resourcepool import dialect
from resourcepool.database.clock import monotonic
from resourcepool.database.retry import fetch_rows
from resourcepool.dialect import RowUpdate
from resourcepool.leases import verbs
from resourcepool.leases.statements import key
from resourcepool.leases.table import Model, table_of
from resourcepool.waiting import tickets
from resourcepool.waiting.allot import WaitingTicket, allot
from resourcepool.waiting.estimates import estimate_of, no_waiter_cache, recent_waiters
from resourcepool.waiting.models import Ticket, line_name, selector_of
from resourcepool.waiting.ticket_wakeups import notify
from resourcepool.waiting.tickets import HeldRows, Row

FIRST_TICKETS = 8  # tickets that a release reads at first; all, if none of these matches
MAX_REREADS = 3  # of the line, if the matching ticket changed concurrently


class _Texts:
    """The SQL for one model on one database; parameters are named."""

    def __init__(self, connection: BaseDatabaseWrapper, model: Model) -> None:
        db_dialect, row, line = dialect.of(connection), table_of(connection, model), tickets.of(connection)
        ticket = line.full
        this_row = f"{row.name}.{row.pk} = %(pk)s AND {row.name}.{row.fence} = %(fence)s"
        in_line = f" FROM {line.name} WHERE {line.waits.replace('%s', '%(pool)s')}"
        fits = f"{this_row}{row.claimable_of_row}"
        takes_any = "" if model.line_per_name else f"{ticket.selector} = '{{}}' AND "
        is_free = f" AND {row.name}.{row.busy_before} <= {db_dialect.now}"
        this_ticket = (
            f"{ticket.id} = %(ticket)s AND {ticket.fence} = %(ticket_fence)s "
            f"AND {ticket.busy_before} > {db_dialect.now}"
        )

        def row_to(where: str, busy_before: str = db_dialect.now, holder: str = "''") -> RowUpdate:
            fence = f"{row.name}.{row.fence} + 1"
            columns = (row.busy_before, busy_before), (row.fence, fence), (row.holder, holder)
            return RowUpdate(row.name, row.pk, columns, where)

        def ticket_with(where: str, **changes: str) -> RowUpdate:
            changes = {"fence": f"{ticket.fence} + 1", **changes}
            columns = [(getattr(line.column, name), value) for name, value in changes.items()]
            return RowUpdate(line.name, line.column.id, columns, where)

        # ``busy_before`` of the ticket tells its waiter how long the row is granted, by the clock at the start of the
        # statement: the waiter cannot know that moment, because the commit may come much later.
        until = db_dialect.indexed_later.replace("%s", ticket.grant_us)
        of_one = {"granted": "%(granted)s", "is_waiting": db_dialect.false, "busy_before": until}
        of_several = {"collected": "%(granted)s", "is_waiting": "%(is_waiting)s"}

        alone = f"{this_row} AND NOT EXISTS (SELECT 1{in_line})"
        delete = f"DELETE FROM {row.name} WHERE {alone}"  # noqa: S608 (quoted names)
        self.release_if_no_waiters = delete if model.deletes_idle_rows else row_to(alone).update
        always_checks = model.deletes_idle_rows or not db_dialect.exists_is_slow
        self.release_unconditionally = None if always_checks else row_to(this_row).update
        can_skip = connection.features.has_select_for_update_skip_locked  # MariaDB from 10.6 on
        self.to_first = can_skip and db_dialect.change_row_and_first_ticket(
            row_to(fits, db_dialect.later.replace("%s", ticket.grant_us), ticket.holder),
            ticket_with(f"{takes_any}{ticket.count} = 1", **of_one),
            f"{in_line} {line.order}",
            f"{ticket.address} * {tickets.TICKET_NUMBERS} + MOD({ticket.id}, {tickets.TICKET_NUMBERS})",
        )
        self.take_back = db_dialect.change_both(ticket_with(this_ticket, **of_several), row_to(this_row))
        lasting = db_dialect.later.replace("%s", "%(grant_us)s")
        # {(for several, only if the row is free): the statements}
        self.to_ticket = {
            (several, if_free): db_dialect.change_both(
                ticket_with(this_ticket, **(of_several if several else of_one)),
                row_to(fits + is_free if if_free else fits, lasting, "%(holder)s"),
                # A free row may be locked by a long transaction.
                nowait=connection if if_free else None,
            )
            for several in (False, True)
            for if_free in (False, True)
        }


@lru_cache
def _texts(model: Model, vendor: str, alias: str) -> _Texts:
    return _Texts(connections[alias], model)


def _of(connection: BaseDatabaseWrapper, model: Model) -> _Texts:
    return _texts(model, connection.vendor, connection.alias)


def _line(model: Model, pk: Any) -> str:
    return line_name(model, selector_of(model, pk))


def release(connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int) -> bool:
    """Hand the row over to the first matching waiter, otherwise free it; returns False if it was lost before."""
    row = (connection, model, pk, fence)
    if recent_waiters.until and recent_waiters.is_likely(_line(model, pk), connection.alias):
        return _to_first(*row) or _if_no_waiters(*row) or _to_fitting(*row)
    return _if_no_waiters(*row) or _to_first(*row) or _to_fitting(*row)


def _to_first(connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int) -> bool:
    """Give the row to the first waiter, if its selector is empty; otherwise change nothing and return False."""
    texts = _of(connection, model)
    if not texts.to_first:
        return False
    params = {"pk": key(connection, model, pk), "fence": fence, "pool": _line(model, pk)}
    params["granted"] = tickets.written([(pk, fence + 1)])
    receiver = dialect.run(connection, texts.to_first, params, dialect.of(connection).first_ticket_value)
    if receiver is None:
        return False
    recent_waiters.note(params["pool"], connection.alias, had_to_wait=True)
    note_assignment(params["pool"], connection.alias, *divmod(receiver, tickets.TICKET_NUMBERS))
    return True


def note_assignment(line: str, using: str, address: int, ticket: int) -> None:
    """Note that this ticket was given a row, and wake the process at ``address``."""
    no_waiter_cache.note_waiter(line, using)
    speed = estimate_of(line, using)
    speed.served(ticket, monotonic())
    notify(using, ticket, address, speed.per_second)


def _if_no_waiters(connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int) -> bool:
    """Free the row; if there are waiters, or the row is lost, change nothing and return False."""
    texts, line = _of(connection, model), _line(model, pk)
    params = {"pk": key(connection, model, pk), "fence": fence, "pool": line}
    if texts.release_unconditionally and no_waiter_cache.is_valid(line, connection.alias):
        return dialect.run(connection, texts.release_unconditionally, params, dialect.row_count) > 0
    asked_at = monotonic()
    done = dialect.run(connection, texts.release_if_no_waiters, params, dialect.row_count) > 0
    if done:
        no_waiter_cache.note_no_waiter(line, connection.alias, asked_at)
    if not done or recent_waiters.until:
        recent_waiters.note(line, connection.alias, had_to_wait=not done)
    return done


def _to_fitting(connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int) -> bool:
    """Give the row to the first matching waiter; if there is none, free it."""
    given = give_to_first_match(connection, model, pk, fence)
    return given or verbs.release_all(connection, model, [(pk, fence)], 0.0) == 1


def give_to_first_match(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, *, if_free: bool = False
) -> bool:
    """Give the row to the first matching waiter; if there is none, change nothing and return False."""
    selector, rereads = selector_of(model, pk), MAX_REREADS
    for most in (FIRST_TICKETS, tickets.MAX_TICKETS):
        line = tickets.in_line(connection, model, most, selector)
        is_whole = len(line) < most
        while line:
            selectors = matching_selectors(connection, model, (pk, fence), {ticket.selector for ticket in line})
            given = allot(line, {selector: [pk] for selector in selectors})
            if not given:
                break
            ticket = next(ticket for ticket in line if ticket.pk in given)
            if give(connection, model, pk, fence, ticket, if_free=if_free):
                return True
            # The ticket has just got another row, or has left. A ticket for several rows may still need this one.
            if ticket.lacks > 1 and (rereads := rereads - 1) > 0:
                line = tickets.in_line(connection, model, most, selector)
            else:
                line = line[line.index(ticket) + 1 :]
        if is_whole:
            break
    return False


def give(
    connection: BaseDatabaseWrapper,
    model: Model,
    pk: Any,
    fence: int,
    ticket: WaitingTicket,
    *,
    if_free: bool = False,
) -> bool:
    """Give this row to this ticket; if either changed concurrently, change nothing and return False."""
    holds = ticket.given(pk, fence + 1).holds
    sql = _of(connection, model).to_ticket[ticket.count > 1, if_free]
    if given := _change_both(connection, model, sql, (pk, fence), ticket, holds):
        note_assignment(_line(model, pk), connection.alias, ticket.address, ticket.pk)
    return given


def take_from(
    connection: BaseDatabaseWrapper, model: Model, row: Row, ticket: WaitingTicket, left: HeldRows
) -> bool:
    """Free this row of a ticket for several rows, which keeps ``left``; returns False if either changed."""
    return _change_both(connection, model, _of(connection, model).take_back, row, ticket, left)


def _change_both(
    connection: BaseDatabaseWrapper,
    model: Model,
    sql: Sequence[str],
    row: Row,
    ticket: WaitingTicket,
    holds: HeldRows,
) -> bool:
    """Change this row, and this ticket to hold ``holds``; if either changed, change nothing and return False."""
    params = {
        "pk": key(connection, model, row[0]),
        "fence": row[1],
        "ticket": ticket.pk,
        "ticket_fence": ticket.fence,
        "granted": tickets.written(holds),
        "is_waiting": len(holds) < ticket.count,
        "grant_us": ticket.grant_us,
        "holder": ticket.holder,
    }
    if len(sql) == 1:
        return dialect.run(connection, sql[0], params, dialect.row_count) > 0
    with transaction.atomic(using=connection.alias):
        done = all(dialect.run(connection, statement, params, dialect.row_count) for statement in sql)
        transaction.set_rollback(not done, using=connection.alias)
    return done


def matching_selectors(
    connection: BaseDatabaseWrapper, model: Model, row: Row, selectors: Collection[str]
) -> set[str]:
    """Return the ``selectors`` that match this row; none if it is out of service or has another fence."""
    table, ordered = table_of(connection, model), sorted(selectors)
    wheres = [model.where(selector, connection) for selector in ordered]
    cases = ", ".join(f"CASE WHEN 1 = 1{where.sql} THEN 1 ELSE 0 END" for where in wheres)
    sql = f"SELECT {cases} FROM {table.name} WHERE {table.pk} = %s AND {table.fence} = %s{table.claimable}"  # noqa: S608
    params = [*(value for where in wheres for value in where.params), key(connection, model, row[0]), row[1]]
    rows = fetch_rows(connection, sql, params)
    return {selector for row in rows for selector, matches in zip(ordered, row, strict=True) if matches}


def settle_release(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, trusted_until: float
) -> bool:
    """Find out whether a release whose reply was lost took effect; see ``verbs.settle_release``."""
    given = tickets.written([(pk, fence + 1)])
    to_one, to_several = Q(granted=given), Q(collected__contains=given[1:-1])
    line = Ticket.objects.using(connection.alias).filter(pool=_line(model, pk))
    was_handed_over = line.filter(to_one | to_several)
    is_back = verbs.settle_release(connection, model, pk, fence, trusted_until)
    return bool(is_back) or was_handed_over.exists()
