"""Statements with a short lock timeout, sent once."""

import contextlib
from collections.abc import Iterator

from django.db import DatabaseError, connections

from resourcepool import dialect
from resourcepool.dialect import ErrorKind, short_transaction
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked


@contextlib.contextmanager
def fail_if_locked(using: str) -> Iterator[None]:
    """Run the block's statements, one transaction on ``using``, with a short lock timeout; nothing is sent again.

    Raises:
        RowLocked: nothing was changed. Inside a transaction of the caller it is the database's own error.
    """
    connection = connections[using]
    is_outermost = not connection.in_atomic_block
    try:
        with short_transaction(connection, idle=None):
            yield
    except DatabaseError as error:
        if is_outermost and dialect.error_kind(connection, error) is ErrorKind.BUSY:
            raise row_locked(using) from error
        raise


def row_locked(using: str, told: str = "") -> RowLocked:
    """Return the error for a locked row; ``told``: who has it locked."""
    return RowLocked(_with(told, sentence_for("row_locked", alias=repr(using))))


def rows_locked(using: str, locked: int, done: int, told: str = "") -> RowLocked:
    """Return the error that says how many rows are locked, and how many others were changed."""
    if locked == 1 and not done:
        return row_locked(using, told)
    return RowLocked(
        _with(told, sentence_for("rows_locked", alias=repr(using), count=locked, count_done=done)), done
    )


def _with(told: str, said: str) -> str:
    return sentence_for("about", name=said, why=told) if told else said
