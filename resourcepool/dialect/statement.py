"""Sends one statement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.connections import close_quietly
from resourcepool.dialect.prepared import Session
from resourcepool.dialect.supported import of

Result = TypeVar("Result")

SESSION = "_resourcepool_session"  # our attributes on Django's connection objects
CURSOR = "_resourcepool_cursor"
LATEST = "_resourcepool_latest"  # the statement sent last
OUT_OF_SYNC = 2014  # the MySQL driver's error code for "commands out of sync"


def run(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
    read: Callable[[Any], Result],
) -> Result:
    """Execute ``sql`` on ``connection`` and return ``read(cursor)``, or on MySQL ``read(reply)``."""
    if connection.vendor == "postgresql" and not connection.queries_logged:
        return _run_with_kept_cursor(connection, sql, params, read)
    if connection.vendor != "mysql" or connection.force_debug_cursor:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return read(cursor)
    connection.close_if_health_check_failed()
    session: Session | None = connection.__dict__.get(SESSION)
    if session is None or session.driver is not connection.connection:
        session = _new_session(connection)
    connection.__dict__[LATEST] = this = object()
    try:
        reply = session.execute(sql, params)
    except (DatabaseError, InterfaceError):
        raise
    except BaseException:  # a signal handler's: the next statement would get the unread reply
        if not connection.in_atomic_block:
            close_quietly(connection)
        raise
    if connection.__dict__[LATEST] is not this:
        # The driver reads the row count and the last insert id after the reply; they may belong to a statement that a
        # signal handler sent in between.
        raise OperationalError(OUT_OF_SYNC, "a signal handler sent a statement before the reply was read")
    return read(reply)


def _run_with_kept_cursor(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
    read: Callable[[Any], Result],
) -> Result:
    """Use the same cursor again: with psycopg, making one takes a third of a small statement's processor time."""
    connection.close_if_health_check_failed()
    # Removed while in use, because a signal handler that acquires or releases needs another one.
    cursor = connection.__dict__.pop(CURSOR, None)
    if cursor is None or cursor.cursor.connection is not connection.connection:
        cursor = connection.cursor()
    cursor.execute(sql, params)
    result = read(cursor)
    connection.__dict__[CURSOR] = cursor
    return result


def all_rows(cursor: Any) -> list[Any]:
    """Return all rows of the answer."""
    return list(cursor.fetchall())


def first_row(cursor: Any) -> Any:
    """Return the first row of the answer; None if there is none."""
    return cursor.fetchone()


def row_count(cursor: Any) -> int:
    """Return how many rows the statement matched."""
    return int(cursor.rowcount)


def _new_session(connection: BaseDatabaseWrapper) -> Session:
    """Return the session of this MySQL connection, after it was opened; cached, because making one takes time."""
    can_prepare = not connection.queries_logged and of(connection).can_prepare(connection)
    session = connection.__dict__[SESSION] = Session(connection, can_prepare=can_prepare)
    return session
