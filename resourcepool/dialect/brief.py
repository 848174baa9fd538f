"""Transactions in which nobody waits long for what somebody else keeps locked, nor keeps others waiting."""

import contextlib
from collections.abc import Iterator

from django.db import DatabaseError, InterfaceError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.supported import of

BRIEF = 3  # whole seconds
IDLE = 5  # whole seconds, more than any of them thinks between two statements


@contextlib.contextmanager
def brief_transaction(
    connection: BaseDatabaseWrapper, *, idle: int | None = IDLE, wait: int = BRIEF
) -> Iterator[None]:
    """Open a transaction in which a statement waits for a locked row, or table, for ``wait`` seconds at most.

    When its process stands still for ``idle`` seconds (None: as long as the project's settings say), MariaDB and
    PostgreSQL end the session, and what it has locked is free; MySQL has no such thing.

    Inside a transaction of the caller, also one begun by turning autocommit off, and on SQLite, a wait is as long as
    the project's settings say.
    """
    speaks, session = of(connection), None
    is_outermost = not connection.in_atomic_block and connection.get_autocommit()
    try:
        with transaction.atomic(using=connection.alias):
            if is_outermost and speaks.brief_lock_wait:
                session = connection.connection
                _execute(connection, speaks.brief_lock_wait, {"seconds": wait, "idle": idle})
            yield
    finally:
        # After its end: Django refuses all statements in one that is to be rolled back. A session that is lost by now
        # has taken along what was set on it.
        if speaks.usual_lock_wait and session is not None and session is connection.connection:
            with contextlib.suppress(DatabaseError, InterfaceError):
                _execute(connection, speaks.usual_lock_wait, None)


def _execute(connection: BaseDatabaseWrapper, sql: str, params: dict[str, int | None] | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
