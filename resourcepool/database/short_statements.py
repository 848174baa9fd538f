"""Statements that wait for no lock for long, sent once."""

import contextlib
from collections.abc import Iterator

from django.db import DatabaseError, connections

from resourcepool import dialect
from resourcepool.dialect import Trouble, brief_transaction
from resourcepool.exceptions import RowLocked


@contextlib.contextmanager
def brief(using: str) -> Iterator[None]:
    """Have the block's statements, one transaction on ``using``, wait for no lock for long; nothing is sent again.

    Raises:
        RowLocked: nothing was changed. Inside a transaction of the caller it is the database's own error.
    """
    connection = connections[using]
    is_outermost = not connection.in_atomic_block
    try:
        with brief_transaction(connection, idle=None):
            yield
    except DatabaseError as error:
        if is_outermost and dialect.trouble(connection, error) is Trouble.BUSY:
            raise row_locked(using) from error
        raise


def row_locked(using: str, told: str = "") -> RowLocked:
    """Return the error that says that a row is locked; ``told``: by whom."""
    return RowLocked(
        f"database {using!r}: a row is locked by somebody's transaction, perhaps its holder's (guard); try again in"
        " a moment" + (f": {told}" if told else "")
    )


def rows_locked(using: str, locked: int, done: int, told: str = "") -> RowLocked:
    """Return the error that says how many rows are locked, and to how many others it was done."""
    if locked == 1 and not done:
        return row_locked(using, told)
    return RowLocked(
        f"database {using!r}: {locked} locked by somebody's transaction, perhaps the holder's (guard); {done} done;"
        " try again in a moment" + (f": {told}" if told else ""),
        done,
    )
