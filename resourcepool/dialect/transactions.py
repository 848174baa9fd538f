"""Limits for one transaction: how long it waits for a locked row, and how long it may idle."""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from django.db import DatabaseError, InterfaceError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.connections import close_quietly, execute
from resourcepool.dialect.supported import of

SHORT_LOCK_WAIT = 3  # whole seconds
IDLE = 5  # whole seconds; our transactions never pause that long between two statements
ENDING = "set_autocommit"  # Django calls it at the end of every transaction


@contextlib.contextmanager
def short_transaction(
    connection: BaseDatabaseWrapper, *, idle: int | None = IDLE, wait: int = SHORT_LOCK_WAIT
) -> Iterator[None]:
    """Open a transaction in which a statement waits at most ``wait`` seconds for a locked row or table.

    If the process is suspended for ``idle`` seconds (None: the project's setting), the database server ends the session
    and releases its locks.

    Inside a transaction of the caller, also one begun by turning autocommit off, and on SQLite, the project's settings
    limit the wait.

    On PostgreSQL it is at READ COMMITTED whatever the project has chosen: under load, all tries could otherwise fail
    because others had changed the rows since its snapshot.
    """
    db_dialect, session = of(connection), None
    is_outermost = not connection.in_atomic_block and connection.get_autocommit()
    try:
        with transaction.atomic(using=connection.alias):
            if is_outermost and db_dialect.short_lock_wait:
                session = connection.connection
                if db_dialect.read_committed and not db_dialect.reads_committed(connection):
                    execute(connection, db_dialect.read_committed)
                execute(connection, db_dialect.short_lock_wait, {"seconds": wait, "idle": idle})
            yield
    finally:
        # After its end, because Django refuses statements in a transaction marked for rollback.
        if db_dialect.usual_lock_wait and session is not None:
            _reset(connection, session, db_dialect.usual_lock_wait)


def limit_idle(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Make the database server end this session if it idles for ``seconds`` in its open transaction.

    The previous limit is restored after the transaction, and kept if it is lower. There is no such limit on SQLite, nor
    in a transaction on MariaDB or MySQL that was begun by turning autocommit off, whose end cannot be noticed.
    """
    limit = of(connection).limit_idle(connection)
    if limit is None:
        return
    first, again, usual = limit
    if usual and not connection.commit_on_exit:
        return
    restore = vars(connection).get(ENDING)
    if isinstance(restore, _RestoreAtEnd) and restore.session is connection.connection:
        execute(connection, again, {"idle": math.ceil(seconds)})
        return
    vars(connection).pop(ENDING, None)  # left by a session that was closed in the middle of its transaction
    execute(connection, first, {"idle": math.ceil(seconds)})
    if usual:
        setattr(connection, ENDING, _RestoreAtEnd(connection, usual))


class _RestoreAtEnd:
    """Replaces ``set_autocommit`` until the end of the open transaction, and then restores the usual limit."""

    def __init__(self, connection: BaseDatabaseWrapper, usual: str) -> None:
        self.session, self._connection, self._usual = connection.connection, connection, usual

    def __call__(self, autocommit: bool, *more: Any, **options: Any) -> None:
        connection = self._connection
        if autocommit:
            vars(connection).pop(ENDING, None)
        try:
            type(connection).set_autocommit(connection, autocommit, *more, **options)
        finally:
            if autocommit:
                _reset(connection, self.session, self._usual)


def _reset(connection: BaseDatabaseWrapper, session: object, usual: str) -> None:
    # A lost session needs no reset; one that cannot be reset is closed.
    if session is connection.connection:
        try:
            execute(connection, usual)
        except (DatabaseError, InterfaceError):
            close_quietly(connection)
