"""Sends one statement."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper

Result = TypeVar("Result")


def run(
    connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any], read: Callable[[Any], Result]
) -> Result:
    """Execute ``sql`` on ``connection`` and return what ``read`` makes of the cursor."""
    cursor = _kept_cursor(connection)
    if cursor is None:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return read(cursor)
    cursor.execute(sql, params)
    return read(cursor)


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
    kept: Any = getattr(connection, "_resourcepool_cursor", None)
    if connection.connection is None or kept is None or kept.cursor.connection is not connection.connection:
        kept = connection.cursor()
        setattr(connection, "_resourcepool_cursor", kept)  # noqa: B010 (Django's class has no such attribute)
    return kept
