"""The statements about tickets: who stands in line for a pool, in the order of service.

Plain SQL, put together once: every wait takes a ticket, looks who is in front, and gives the ticket up.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.dialect import micros
from resourcepool.leases.models import Ticket
from resourcepool.leases.retry import retrying
from resourcepool.leases.table import table_of
from resourcepool.leases.waiting import Place, Request
from resourcepool.leases.where import Where

LONGEST_LINE = 10_000  # tickets looked at; whoever stands further back is not served yet anyway
ODD = 1_000_000  # what a ticket with another selector or for several rows adds to the sum; a plain one adds 1
SKIPPED = ODD**2  # what it adds that the asker itself is skipped; a line of a million would spill over
SPARED_FOR = 2.0  # seconds for which one that has just woken is not skipped again


class _Texts:
    """The SQL for one kind of database."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        speaks, table, quote = dialect.of(connection), table_of(connection, Ticket), connection.ops.quote_name
        pool, selector, count, priority = map(quote, ("pool", "selector", "count", "priority"))
        skipped_until = quote("skipped_until")
        # In full, or SQLite would take the name of a column that is not migrated yet for a text.
        until = f"{table.name}.{skipped_until}"
        about = ", ".join([quote("asked_at"), pool, selector, count, priority])
        alive = f"{pool} = %s AND {table.busy_before} > {speaks.indexed_now}"
        alive += f" AND ({until} IS NULL OR {until} <= {speaks.indexed_now})"
        odd = f"COUNT(CASE WHEN {selector} <> {speaks.exactly} OR {count} <> 1 THEN 1 END)"
        some = f"SELECT COUNT(*) + {ODD - 1} * {odd} FROM {table.name} WHERE {alive} AND {priority}"  # noqa: S608
        self.take = (
            f"INSERT INTO {table.name} ({table.fence}, {table.busy_before}, {about}, {table.holder}) "  # noqa: S608
            f"VALUES (1, {speaks.later}, {speaks.now}, %s, %s, %s, %s, %s)"
            f"{speaks.returning_key.format(pk=table.pk)}"
        )
        self.in_line = (
            f"SELECT {table.pk}, {selector}, {count}, {priority} FROM {table.name} "  # noqa: S608 (quoted names)
            f"WHERE {alive} ORDER BY {priority}, {table.pk} LIMIT %s"
        )
        mine = f"SELECT COUNT(*) FROM {table.name} WHERE {table.pk} = %s"  # noqa: S608
        is_skipped = f"({mine} AND {until} > {speaks.now}) * {SKIPPED}"
        self.ahead = f"({some} < %s) + ({some} = %s AND {table.pk} < %s) + {is_skipped}"
        skip = f"UPDATE {table.name} SET {skipped_until} = {speaks.later} WHERE"  # noqa: S608
        self.skip = f"{skip} ({skipped_until} IS NULL OR {skipped_until} < {speaks.later}) AND {table.pk} IN "
        self.unskip = f"{skip} {table.pk} IN "
        self.remove = f"DELETE FROM {table.name} WHERE {table.pk} IN "  # noqa: S608
        self.dead = (
            f"SELECT {table.pk} FROM {table.name} "  # noqa: S608
            f"WHERE {pool} = %s AND {table.busy_before} < {speaks.later} LIMIT {LONGEST_LINE}"
        )


@lru_cache
def _texts(vendor: str, alias: str) -> _Texts:
    return _Texts(connections[alias])


def _of(connection: BaseDatabaseWrapper) -> _Texts:
    return _texts(connection.vendor, connection.alias)


def take(connection: BaseDatabaseWrapper, request: Request, ttl: float) -> int:
    """Take a ticket, with fence 1, for ``ttl`` seconds: the last one of those with this priority. Returns its key."""
    asked = (request.model._meta.label_lower, request.selector, request.count, request.priority)
    params = (micros(ttl), *asked, request.claim.holder)
    read = dialect.of(connection).key_after_insert
    return retrying(connection, partial(dialect.run, connection, _of(connection).take, params, read))


def in_line(connection: BaseDatabaseWrapper, label: str, most: int = LONGEST_LINE) -> list[Place]:
    """Return up to ``most`` of those who stand in line for the pool ``label``, first to be served first.

    Without those who are skipped.
    """
    return [Place(*row) for row in _rows(connection, _of(connection).in_line, [label, most])]


def ahead(connection: BaseDatabaseWrapper, label: str, selector: str, priority: int, ticket: int) -> Where:
    """Return SQL, and its parameters, for who is served before this ticket; ``others_ahead`` reads its value."""
    same = (selector, label, priority)
    return Where(_of(connection).ahead, (*same, *same, ticket, ticket))


def others_ahead(value: int) -> tuple[int, bool, bool]:
    """Return how many in front want one row of the same, whether anybody there wants something else, and whether
    we are skipped."""
    is_skipped, others = divmod(value, SKIPPED)
    odd, plain = divmod(others, ODD)
    return plain, odd > 0, is_skipped > 0


def remove(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> None:
    """Take these tickets out of the line."""
    _change(connection, _of(connection).remove, [], pks)


def skip(connection: BaseDatabaseWrapper, pks: Sequence[int], seconds: float) -> None:
    """Have nobody leave anything for these tickets for so many seconds, except those that have just woken."""
    _change(connection, _of(connection).skip, [micros(seconds), micros(-SPARED_FOR)], pks, busy=lambda: 0)


def unskip(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> None:
    """Note that whoever stands behind these tickets is awake."""
    _change(connection, _of(connection).unskip, [micros(0)], pks, busy=lambda: 0)


def dead_since(connection: BaseDatabaseWrapper, label: str, seconds: float) -> list[int]:
    """Return the tickets for the pool ``label`` whose holders died more than ``seconds`` ago."""
    return [pk for (pk,) in _rows(connection, _of(connection).dead, [label, micros(-seconds)])]


def _change(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any],
    pks: Sequence[int],
    busy: Callable[[], int] | None = None,
) -> None:
    sql = f"{sql}({', '.join(['%s'] * len(pks))})"
    send = partial(dialect.run, connection, sql, [*params, *pks], dialect.row_count)
    retrying(connection, send, busy=busy)


def _rows(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> list[Any]:
    return retrying(connection, partial(dialect.run, connection, sql, params, dialect.all_rows))
