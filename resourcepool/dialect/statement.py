"""Sends one statement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.connections import close_quietly
from resourcepool.dialect.prepared import Session
from resourcepool.dialect.supported import of

Result = TypeVar("Result")

SESSION = "_resourcepool_session"  # our attribute on Django's connection objects


def run(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
    read: Callable[[Any], Result],
) -> Result:
    """Execute ``sql`` on ``connection`` and return ``read(cursor)``."""
    if connection.vendor != "mysql" or connection.force_debug_cursor:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return read(cursor)
    session = _session(connection)
    try:
        return session.execute(sql, params, read)
    except (DatabaseError, InterfaceError):
        raise
    except BaseException:  # a signal handler's: the next statement would get the unread reply
        if not connection.in_atomic_block:
            close_quietly(connection)
        raise


def all_rows(cursor: Any) -> list[Any]:
    """Return all rows of the answer."""
    return list(cursor.fetchall())


def row_count(cursor: Any) -> int:
    """Return how many rows the statement matched."""
    return int(cursor.rowcount)


def _session(connection: BaseDatabaseWrapper) -> Session:
    """Return the cached session of this MySQL connection, or a new one after a reconnect."""
    connection.close_if_health_check_failed()
    session: Session | None = connection.__dict__.get(SESSION)
    if session is None or session.driver is not connection.connection:
        can_prepare = not connection.queries_logged and of(connection).can_prepare(connection)
        session = connection.__dict__[SESSION] = Session(connection, can_prepare=can_prepare)
    return session
