"""Limits for one transaction: how long it waits for a locked row, and how long it may be silent."""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from django.db import DatabaseError, InterfaceError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.connections import close_quietly, execute
from resourcepool.dialect.supported import of

SHORT_LOCK_WAIT = 3  # whole seconds
IDLE = 5  # whole seconds, more than any of them thinks between two statements
ENDING = "set_autocommit"  # what Django calls at the end of a transaction, whatever its end


@contextlib.contextmanager
def short_transaction(
    connection: BaseDatabaseWrapper, *, idle: int | None = IDLE, wait: int = SHORT_LOCK_WAIT
) -> Iterator[None]:
    """Open a transaction in which a statement waits for a locked row, or table, for ``wait`` seconds at most.

    When its process stands still for ``idle`` seconds (None: as long as the project's settings say), the server ends
    the session, and what it has locked is free.

    Inside a transaction of the caller, also one begun by turning autocommit off, and on SQLite, a wait is as long as
    the project's settings say.
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
        # After its end, because Django refuses all statements in a transaction that is to be rolled back.
        if db_dialect.usual_lock_wait and session is not None:
            _reset(connection, session, db_dialect.usual_lock_wait)


def limit_idle(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Have the server end this session if it is silent for so long within the transaction that is open in it.

    What was set before is back after the transaction, and stays if it is less. SQLite has no such limit, and neither
    has a transaction on MariaDB or MySQL that was begun by turning autocommit off: nobody tells when it ends.
    """
    limit = of(connection).limit_idle(connection)
    if limit is None:
        return
    first, again, usual = limit
    if usual and not connection.commit_on_exit:
        return
    until_its_end = vars(connection).get(ENDING)
    if isinstance(until_its_end, _UntilItsEnd) and until_its_end.session is connection.connection:
        execute(connection, again, {"idle": math.ceil(seconds)})
        return
    vars(connection).pop(ENDING, None)  # of a session that was closed in the middle of its transaction
    execute(connection, first, {"idle": math.ceil(seconds)})
    if usual:
        setattr(connection, ENDING, _UntilItsEnd(connection, usual))


class _UntilItsEnd:
    """Stands in for what ends the transaction that is open in ``session``, and sets what is usual after that."""

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
    # A session that is lost by now has taken along what was set in it; one that cannot be set back does not go on.
    if session is connection.connection:
        try:
            execute(connection, usual)
        except (DatabaseError, InterfaceError):
            close_quietly(connection)
