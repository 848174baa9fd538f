"""Transactions in which nobody waits long for what somebody else keeps locked, nor keeps others waiting."""

import contextlib
from collections.abc import Iterator

from django.db import DatabaseError, InterfaceError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.supported import of

BRIEF = 3  # whole seconds
IDLE = 5  # whole seconds, more than any of them thinks between two statements


@contextlib.contextmanager
def brief_transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Open a transaction in which a statement waits for a locked row for ``BRIEF`` seconds at most.

    When its process stands still for ``IDLE`` seconds, MariaDB and PostgreSQL end the session, and what it has
    locked is free; MySQL has no such thing.

    Inside a transaction of the caller, and on SQLite, a wait is as long as the project's settings say.
    """
    speaks, is_outermost = of(connection), not connection.in_atomic_block
    with transaction.atomic(using=connection.alias):
        if is_outermost and speaks.brief_lock_wait:
            _execute(connection, speaks.brief_lock_wait, {"seconds": BRIEF, "idle": IDLE})
        try:
            yield
        finally:
            if is_outermost and speaks.usual_lock_wait:
                # When the connection is lost, so is what was set on it.
                with contextlib.suppress(DatabaseError, InterfaceError):
                    _execute(connection, speaks.usual_lock_wait, None)


def _execute(connection: BaseDatabaseWrapper, sql: str, params: dict[str, int] | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
