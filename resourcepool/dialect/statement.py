"""Sends one statement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.connections import close_quietly
from resourcepool.dialect.prepared import Prepared
from resourcepool.dialect.supported import of

Result = TypeVar("Result")

KEPT = "_resourcepool_cursor"  # Django's connection objects have no such attribute
PREPARED = "_resourcepool_prepared"  # in which session, and what
LATEST = "_resourcepool_latest"  # which statement was begun last
OUT_OF_STEP = 2014  # as MySQL's driver says of a reply that it does not wait for


def run(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
    read: Callable[[Any], Result],
) -> Result:
    """Execute ``sql`` on ``connection`` and return what ``read`` makes of the cursor."""
    if connection.vendor != "mysql" or connection.force_debug_cursor:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return read(cursor)
    session, cursor, prepared = kept = _kept_cursor(connection)
    connection.__dict__[LATEST] = this = object()
    try:
        if prepared is None or connection.execute_wrappers:
            cursor.execute(sql, params)
        else:
            prepared.execute(cursor, sql, params)
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
    result = read(cursor)
    if session is connection.connection:
        connection.__dict__[KEPT] = kept
    return result


def all_rows(cursor: Any) -> list[Any]:
    """Return every row of the answer."""
    # MySQL's driver has read them all, so nothing can fail any more that Django's wrapper would have to translate.
    return list((cursor.cursor if cursor.db.vendor == "mysql" else cursor).fetchall())


def row_count(cursor: Any) -> int:
    """Return how many rows the statement matched."""
    return int(cursor.cursor.rowcount)  # the driver's: asking Django's wrapper takes longer


def _kept_cursor(connection: BaseDatabaseWrapper) -> tuple[Any, Any, Prepared | None]:
    """Return the driver's session, what it has prepared, and a cursor that stays open as long as that.

    Making a cursor costs half a statement.

    For MySQL only: on SQLite an open cursor may keep a lock, on PostgreSQL it saves nothing. Where queries
    are counted or logged (``force_debug_cursor``), Django makes a new one for that.
    """
    connection.close_if_health_check_failed()
    # Taken away while it is in use: a signal handler that acquires or releases just then needs another one.
    session, cursor, prepared = connection.__dict__.pop(KEPT, (None, None, None))
    if session is None or session is not connection.connection:
        cursor = connection.cursor()
        prepared = _prepared(connection)
    return connection.connection, cursor, prepared


def _prepared(connection: BaseDatabaseWrapper) -> Prepared | None:
    """Return what the session has prepared, with whatever cursor; None: texts are sent, or Django logs them."""
    if connection.queries_logged or not of(connection).can_prepare(connection):
        return None
    session, known = connection.__dict__.get(PREPARED, (None, None))
    if session is None or session is not connection.connection:
        known = Prepared(connection.settings_dict["NAME"])
        connection.__dict__[PREPARED] = connection.connection, known
    prepared: Prepared = known
    return prepared
