"""Limits for one transaction: how long it waits for a locked row, and how long it may idle."""

import contextlib
from collections.abc import Iterator

from django.db import DatabaseError, InterfaceError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.connections import close_quietly, execute
from resourcepool.dialect.supported import of

SHORT_LOCK_WAIT = 3  # whole seconds
IDLE = 5  # whole seconds; most of our transactions never pause that long between two statements


@contextlib.contextmanager
def short_transaction(
    connection: BaseDatabaseWrapper, *, idle: int = IDLE, wait: int = SHORT_LOCK_WAIT
) -> Iterator[None]:
    """Open a transaction in which a statement waits at most ``wait`` seconds for a locked row or table.

    If the process is suspended for ``idle`` seconds, the database server ends the session and releases its locks.

    Inside a transaction of the caller, also one begun by turning autocommit off, and on SQLite, the project's settings
    apply.
    """
    db_dialect, session = of(connection), None
    is_outermost = not connection.in_atomic_block and connection.get_autocommit()
    try:
        with transaction.atomic(using=connection.alias):
            if is_outermost and db_dialect.short_lock_wait:
                session = connection.connection
                execute(connection, db_dialect.short_lock_wait, {"seconds": wait, "idle": idle})
            yield
    finally:
        # After its end, because Django refuses statements in a transaction marked for rollback.
        # A lost session needs no reset; one that cannot be reset is closed.
        if db_dialect.usual_lock_wait and session is not None and session is connection.connection:
            try:
                execute(connection, db_dialect.usual_lock_wait)
            except (DatabaseError, InterfaceError):
                close_quietly(connection)
