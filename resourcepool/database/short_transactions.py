"""Transactions for operators' changes, which must not wait for a holder's long transaction."""

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, NoReturn, TypeVar

from django.db import DatabaseError, connections

from resourcepool import dialect
from resourcepool.database.lock_holders import AnyModel, describe_lockers
from resourcepool.database.retry import retrying
from resourcepool.dialect import SHORT_LOCK_WAIT, ErrorKind, short_transaction
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked

Result = TypeVar("Result")

LONG_IDLE = 60  # whole seconds between two statements: an import or a form may compute meanwhile


def run_short_transaction(
    using: str,
    work: Callable[[], Result],
    *,
    settle: Callable[[], Result] | None = None,
    rows: tuple[AnyModel, Collection[Any]] | None = None,
    wait: int = SHORT_LOCK_WAIT,
) -> Result:
    """Run ``work`` in one transaction on ``using`` that waits only briefly for locks; return its result.

    Inside a transaction of the caller, errors are the database's own, and the caller decides whether to retry.

    Args:
        settle: see ``retrying``.
        rows: model and primary keys of the changed rows, so that the error can name the sessions that lock them.
        wait: whole seconds that a statement waits for a lock.

    Raises:
        RowLocked: nothing was changed.
        DatabaseUnavailable: the database did not answer; nothing was changed, or it is unknown.
    """
    connection = connections[using]

    def send() -> Result:
        with short_transaction(connection, wait=wait):
            return work()

    def locked() -> NoReturn:
        raise row_locked(using, describe_lockers(using, *rows) if rows else "")

    return retrying(connection, send, settle=settle, busy=None if connection.in_atomic_block else locked)


@contextlib.contextmanager
def fail_if_locked(using: str) -> Iterator[None]:
    """Run the block in one transaction on ``using`` with a short lock timeout, without retries.

    Raises:
        RowLocked: nothing was changed. Inside a transaction of the caller, the database's own error is raised instead.
    """
    connection = connections[using]
    is_outermost = not connection.in_atomic_block
    try:
        with short_transaction(connection, idle=LONG_IDLE):
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
