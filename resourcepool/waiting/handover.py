"""Hands one row over to one ticket: both change together, or neither does."""

from collections.abc import Collection, Sequence
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import hints
from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import RowUpdate, cached_per_database
from resourcepool.db.retry import fetch_rows
from resourcepool.leases.models import Model, table_of
from resourcepool.leases.statements import key
from resourcepool.waiting import tickets
from resourcepool.waiting.models import line_name, selector_of
from resourcepool.waiting.pacing import pacing_of
from resourcepool.waiting.tickets import HeldRows, Row, WaitingTicket

FIRST_TICKETS = 8  # tickets that a release reads at first
TICKET_PARAMS = [f"ticket_{number}" for number in range(FIRST_TICKETS)]


class _Texts:
    """The SQL for one model on one database; parameters are named."""

    def __init__(self, connection: BaseDatabaseWrapper, model: Model) -> None:
        db_dialect, row, line = dialect.of(connection), table_of(connection, model), tickets.of(connection)
        ticket = line.full
        this_row = f"{row.name}.{row.pk} = %(pk)s AND {row.name}.{row.fence} = %(fence)s"
        fits = f"{this_row}{row.claimable_of_row}"
        is_free = f" AND {row.name}.{row.busy_before} <= {db_dialect.now}"
        this_ticket = (
            f"{ticket.id} = %(ticket)s AND {ticket.fence} = %(ticket_fence)s "
            f"AND {ticket.busy_before} > {db_dialect.now}"
        )

        def row_to(where: str, busy_before: str = db_dialect.now, holder: str = "''") -> RowUpdate:
            fence = f"{row.name}.{row.fence} + 1"
            columns = (row.busy_before, busy_before), (row.fence, fence), (row.holder, holder)
            return RowUpdate(row.name, row.pk, columns, where)

        def ticket_with(where: str = this_ticket, /, **changes: str) -> RowUpdate:
            changes = {"fence": f"{ticket.fence} + 1", **changes}
            columns = [(getattr(line.column, name), value) for name, value in changes.items()]
            return RowUpdate(line.name, line.column.id, columns, where)

        # ``busy_before`` of the ticket tells its waiter how long the row is granted, by the clock at the start of the
        # statement: the waiter cannot know that moment, because the commit may come much later.
        until = db_dialect.indexed_later.replace("%s", ticket.grant_us)
        of_one = {"granted": "%(granted)s", "is_waiting": db_dialect.false, "busy_before": until}
        of_several = {"collected": "%(granted)s", "is_waiting": "%(is_waiting)s"}
        waiting = f" FROM {line.name} WHERE {line.waits.replace('%s', '%(pool)s')}"
        nobody_waits = f"NOT EXISTS (SELECT 1{waiting})"
        delete = f"DELETE FROM {row.name} WHERE {this_row} AND {nobody_waits}"  # noqa: S608 (quoted names)
        update = row_to(f"{this_row} AND {nobody_waits}").update
        self.free_if_nobody_waits = delete if model.deletes_idle_rows else update
        always_asks = model.deletes_idle_rows or not db_dialect.exists_is_slow
        self.free_without_asking = None if always_asks else row_to(this_row).update
        keys = ", ".join(f"%({name})s" for name in TICKET_PARAMS)
        still_waits = (
            f"{line.column.is_waiting} = {db_dialect.true} AND {line.column.busy_before} > {db_dialect.now}"
        )
        can_skip = connection.features.has_select_for_update_skip_locked  # MariaDB from 10.6 on
        to_first = (
            row_to(fits, db_dialect.later.replace("%s", ticket.grant_us), ticket.holder),
            ticket_with("", **of_one),
        )
        first = f" FROM {line.name} WHERE {line.column.id} IN ({{}}) AND {still_waits}"
        self.give_to_first = can_skip and db_dialect.change_row_and_first_ticket(
            *to_first, f"{first.format(keys)} {line.order}"
        )
        takes_not_any = f"{line.column.count} > 1"
        takes_not_any += "" if model.line_per_name else f" OR {line.column.selector} <> '{{}}'"
        keys_in_line = f"SELECT {line.column.id} FROM line"  # noqa: S608 (quoted names)
        in_line = f"SELECT *{waiting} {line.order} LIMIT {FIRST_TICKETS}"
        all_take_any = f"NOT EXISTS (SELECT 1 FROM line WHERE {takes_not_any})"  # noqa: S608 (quoted names)
        self.give_in_line = can_skip and db_dialect.change_row_and_first_in_line(
            *to_first,
            in_line,
            f"{first.format(keys_in_line)} AND {all_take_any} {line.order}",
            ticket.address,
        )
        self.take_back = db_dialect.change_both(ticket_with(**of_several), row_to(this_row))
        lasting = db_dialect.later.replace("%s", "%(grant_us)s")
        # {(for several, only if the row is free): the statements}
        self.give = {
            (several, if_free): db_dialect.change_both(
                ticket_with(**(of_several if several else of_one)),
                row_to(fits + is_free if if_free else fits, lasting, "%(holder)s"),
                # A free row may be locked by a long transaction.
                nowait=connection if if_free else None,
            )
            for several in (False, True)
            for if_free in (False, True)
        }


of = cached_per_database(_Texts)  # the SQL for the rows of a model on the database of a connection


def line_of(model: Model, pk: Any) -> str:
    """Return the name of the line for this row."""
    return line_name(model, selector_of(model, pk))


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
    holds = (*ticket.holds, (pk, fence + 1))
    sql = of(connection, model).give[ticket.count > 1, if_free]
    if given := _change_both(connection, model, sql, (pk, fence), ticket, holds):
        note_given(connection.alias, line_of(model, pk), ticket.pk, ticket.address)
    return given


def give_to_first(
    connection: BaseDatabaseWrapper,
    model: Model,
    pk: Any,
    fence: int,
    line: str,
    first: Sequence[WaitingTicket],
) -> bool:
    """Give this row to the first of these tickets that still waits and gets no other row at the same moment.

    Args:
        line: the name of the row's line.
        first: 1 to ``FIRST_TICKETS`` tickets in the order of service, which take any row.

    Returns:
        False: nothing has changed.
    """
    if not (sql := of(connection, model).give_to_first):
        return any(give(connection, model, pk, fence, ticket) for ticket in first)
    keys = [ticket.pk for ticket in first]
    keys += keys[-1:] * (FIRST_TICKETS - len(keys))
    params = {"pk": key(connection, model, pk), "fence": fence, **dict(zip(TICKET_PARAMS, keys, strict=True))}
    params["granted"] = tickets.written([(pk, fence + 1)])
    given = dialect.run_for_number(connection, sql, params, dialect.of(connection).changed_ticket)
    for ticket in first:
        if ticket.pk == given:
            note_given(connection.alias, line, ticket.pk, ticket.address)
    return given is not None


def give_in_line(connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, line: str) -> bool:
    """Read the first tickets and ``give_to_first`` in one statement, where the database can and all take any row.

    Returns:
        False: nothing has changed.
    """
    if not (sql := of(connection, model).give_in_line):
        return False
    granted = tickets.written([(pk, fence + 1)])
    params = {"pk": key(connection, model, pk), "fence": fence, "granted": granted, "pool": line}
    if (given := dialect.run(connection, sql, params, dialect.first_row)) is None:
        return False
    ticket, address, length = given
    pacing_of(line, connection.alias).found_line(length, monotonic())
    note_given(connection.alias, line, ticket, address)
    return True


def note_given(using: str, line: str, ticket: int, address: int) -> None:
    """Note that this ticket was given a row, and wake the process at ``address``."""
    pacing = pacing_of(line, using)
    pacing.given(ticket, monotonic())
    hints.notify(using, ticket, address, pacing.per_second)


def take_from(
    connection: BaseDatabaseWrapper, model: Model, row: Row, ticket: WaitingTicket, left: HeldRows
) -> bool:
    """Free this row of a ticket for several rows, which keeps ``left``; returns False if either changed."""
    return _change_both(connection, model, of(connection, model).take_back, row, ticket, left)


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
