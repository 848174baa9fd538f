"""Sends one statement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.connections import close_quietly
from resourcepool.dialect.prepared import Session
from resourcepool.dialect.supported import of

Result = TypeVar("Result")

SESSION = "_resourcepool_session"  # Django's connection objects have no such attribute
LATEST = "_resourcepool_latest"  # which statement was begun last
OUT_OF_STEP = 2014  # as MySQL's driver says of a reply that it does not wait for


def run(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
    read: Callable[[Any], Result],
) -> Result:
    """Execute ``sql`` on ``connection`` and return what ``read`` makes of the cursor, or (MySQL) the ``Reply``."""
    if connection.vendor != "mysql" or connection.force_debug_cursor:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return read(cursor)
    session = _session(connection)
    connection.__dict__[LATEST] = this = object()
    try:
        reply = session.execute(sql, params)
    except (DatabaseError, InterfaceError):
        raise
    except BaseException:  # a signal handler's: the reply is not read, and the next statement would get it
        if not connection.in_atomic_block:
            close_quietly(connection)
        raise
    if connection.__dict__[LATEST] is not this:
        # The driver asks the session for the row count and the last insert id after it has read the reply, and they may
        # be those of a statement that a signal handler sent in between.
        raise OperationalError(OUT_OF_STEP, "a signal handler sent a statement before the reply was read")
    return read(reply)


def all_rows(cursor: Any) -> list[Any]:
    """Return every row of the answer."""
    return list(cursor.fetchall())


def row_count(cursor: Any) -> int:
    """Return how many rows the statement matched."""
    return int(cursor.rowcount)


def _session(connection: BaseDatabaseWrapper) -> Session:
    """Return the session of this connection to MySQL; if there is none, or another one than before, a new one."""
    connection.close_if_health_check_failed()
    kept: Session | None = connection.__dict__.get(SESSION)
    if kept is None or kept.driver is not connection.connection:
        can_prepare = not connection.queries_logged and of(connection).can_prepare(connection)
        kept = connection.__dict__[SESSION] = Session(connection, can_prepare=can_prepare)
    return kept
