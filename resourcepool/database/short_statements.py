"""Statements with a short lock timeout, without retries."""

import contextlib
from collections.abc import Iterator

from django.db import DatabaseError, connections

from resourcepool import dialect
from resourcepool.dialect import ErrorKind, short_transaction
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked


@contextlib.contextmanager
def fail_if_locked(using: str) -> Iterator[None]:
    """Run the block in one transaction on ``using`` with a short lock timeout, without retries.

    Raises:
        RowLocked: nothing was changed. Inside a transaction of the caller, the database's own error is raised instead.
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


def row_locked(using: str, lockers: str = "") -> RowLocked:
    """Return the error for a locked row; ``lockers``: the sessions that lock it."""
    return RowLocked(_with_lockers(lockers, sentence_for("row_locked", alias=repr(using))))


def rows_locked(using: str, locked: int, done: int, lockers: str = "") -> RowLocked:
    """Return the error for ``locked`` rows, of which ``done`` others were changed."""
    if locked == 1 and not done:
        return row_locked(using, lockers)
    error = sentence_for("rows_locked", alias=repr(using), count=locked, count_done=done)
    return RowLocked(_with_lockers(lockers, error), done)


def _with_lockers(lockers: str, error: str) -> str:
    return sentence_for("about", name=error, why=lockers) if lockers else error
