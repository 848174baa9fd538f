"""Transactions for operators' changes, which must not wait for a holder's long transaction."""

from collections.abc import Callable, Collection
from typing import Any, NoReturn, TypeVar

from django.db import connections

from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import row_locked
from resourcepool.dialect import SHORT_LOCK_WAIT, short_transaction
from resourcepool.exceptions import RowLocked
from resourcepool.leases.lock_holders import describe_lockers
from resourcepool.leases.table import Model

Result = TypeVar("Result")


def run_short_transaction(
    using: str,
    work: Callable[[], Result],
    *,
    settle: Callable[[], Result] | None = None,
    rows: tuple[Model, Collection[Any]] | None = None,
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
        raise locked_row_error(using, rows)

    return retrying(connection, send, settle=settle, busy=None if connection.in_atomic_block else locked)


def locked_row_error(using: str, rows: tuple[Model, Collection[Any]] | None = None) -> RowLocked:
    """Return the error for a locked row; it names the sessions that lock ``rows``, if they can be seen."""
    return row_locked(using, describe_lockers(using, *rows) if rows else "")
