"""The statements about tickets: who stands in line for a pool, in the order of service.

Plain SQL, put together once: every wait takes a ticket, looks who is in front, and gives the ticket up.
"""

from collections.abc import Sequence
from functools import lru_cache
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


class _Texts:
    """The SQL for one kind of database."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        speaks, table, quote = dialect.of(connection), table_of(connection, Ticket), connection.ops.quote_name
        pool, selector, priority = quote("pool"), quote("selector"), quote("priority")
        about = [quote(name) for name in ("asked_at", "pool", "selector", "count", "priority")]
        columns = ", ".join([table.fence, table.busy_before, *about, table.holder])
        alive = f"{pool} = %s AND {table.busy_before} > {speaks.indexed_now}"
        count = f"SELECT COUNT(*) FROM {table.name} WHERE {alive} AND {selector} = %s"  # noqa: S608 (quoted names)
        order = f"{priority}, {table.pk}"
        self.take = (
            f"INSERT INTO {table.name} ({columns}) "  # noqa: S608
            f"VALUES (1, {speaks.later}, {speaks.now}, %s, %s, %s, %s, %s)"
            f"{speaks.returning_key.format(pk=table.pk)}"
        )
        self.in_line = (
            f"SELECT {table.pk}, {selector}, {quote('count')} FROM {table.name} "  # noqa: S608
            f"WHERE {alive} ORDER BY {order} LIMIT %s"
        )
        self.ahead = f"({count} AND {priority} < %s) + ({count} AND {priority} = %s AND {table.pk} < %s)"
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
    """Stand in line at the end of those with the same priority, for ``ttl`` seconds; returns the ticket's key.

    Its fence is 1.
    """
    asked = (request.model._meta.label_lower, request.selector, request.count, request.priority)
    params = (micros(ttl), *asked, request.claim.holder)

    def send() -> int:
        with connection.cursor() as cursor:
            cursor.execute(_of(connection).take, params)
            return dialect.of(connection).key_after_insert(cursor)

    return retrying(connection, send)


def in_line(connection: BaseDatabaseWrapper, label: str, most: int = LONGEST_LINE) -> list[Place]:
    """Return up to ``most`` of those who stand in line for the pool ``label``, first to be served first."""
    return [Place(*row) for row in _rows(connection, _of(connection).in_line, [label, most])]


def ahead(connection: BaseDatabaseWrapper, request: Request, ticket: int) -> Where:
    """Return SQL, and its parameters, for how many who want the same rows are served before this ticket."""
    same = (request.model._meta.label_lower, request.selector)
    return Where(_of(connection).ahead, (*same, request.priority, *same, request.priority, ticket))


def remove(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> None:
    """Take these tickets out of the line."""
    places = ", ".join(["%s"] * len(pks))

    def send() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"{_of(connection).remove}({places})", pks)

    retrying(connection, send)


def dead_since(connection: BaseDatabaseWrapper, label: str, seconds: float) -> list[int]:
    """Return the tickets for the pool ``label`` whose holders died more than ``seconds`` ago."""
    return [pk for (pk,) in _rows(connection, _of(connection).dead, [label, micros(-seconds)])]


def _rows(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> list[Any]:
    def send() -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return list(cursor.fetchall())

    return retrying(connection, send)
