"""Sends one statement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper

Result = TypeVar("Result")

KEPT = "_resourcepool_cursor"  # Django's connection objects have no such attribute


def run(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
    read: Callable[[Any], Result],
) -> Result:
    """Execute ``sql`` on ``connection`` and return what ``read`` makes of the cursor."""
    cursor = _kept_cursor(connection)
    if cursor is None:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return read(cursor)
    cursor.execute(sql, params)
    result = read(cursor)
    connection.__dict__[KEPT] = cursor
    return result


def all_rows(cursor: Any) -> list[Any]:
    """Return every row of the answer."""
    return list(cursor.fetchall())


def row_count(cursor: Any) -> int:
    """Return how many rows the statement matched."""
    return int(cursor.rowcount)


def _kept_cursor(connection: BaseDatabaseWrapper) -> Any:
    """Return a cursor that stays open as long as the session, where that is safe: making one costs half a statement.

    On SQLite an open cursor may keep a lock, on PostgreSQL it saves nothing. Whoever counts or logs queries gets a new
    one, which Django makes for that.
    """
    if connection.vendor != "mysql" or connection.queries_logged:
        return None
    connection.close_if_health_check_failed()
    # Taken away while it is in use: a signal handler that acquires or releases just then needs another one.
    kept: Any = connection.__dict__.pop(KEPT, None)
    if connection.connection is None or kept is None or kept.cursor.connection is not connection.connection:
        kept = connection.cursor()
    return kept
