"""Statements with a short lock timeout, sent once."""

import contextlib
from collections.abc import Iterator

from django.db import DatabaseError, connections

from resourcepool import dialect
from resourcepool.dialect import Trouble, brief_transaction
from resourcepool.exceptions import RowLocked


@contextlib.contextmanager
def brief(using: str) -> Iterator[None]:
    """Run the block's statements, one transaction on ``using``, with a short lock timeout; nothing is sent again.

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
    """Return the error for a locked row; ``told``: who has it locked."""
    return RowLocked(
        f"database {using!r}: a row is locked by somebody's transaction, perhaps its holder's (guard); try again in"
        " a moment" + (f": {told}" if told else "")
    )


def rows_locked(using: str, locked: int, done: int, told: str = "") -> RowLocked:
    """Return the error that says how many rows are locked, and how many others were changed."""
    if locked == 1 and not done:
        return row_locked(using, told)
    return RowLocked(
        f"database {using!r}: {locked} locked by somebody's transaction, perhaps the holder's (guard); {done} done;"
        " try again in a moment" + (f": {told}" if told else ""),
        done,
    )
