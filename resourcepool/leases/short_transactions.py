"""Changes that an operator waits for: a holder in the middle of a long transaction must not keep them waiting."""

from collections.abc import Callable, Collection
from typing import Any, NoReturn, TypeVar

from django.db import connections

from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import row_locked
from resourcepool.dialect import brief_transaction
from resourcepool.exceptions import RowLocked
from resourcepool.leases.lock_holders import sentence
from resourcepool.leases.table import Model

Result = TypeVar("Result")


def briefly(
    using: str,
    work: Callable[[], Result],
    *,
    settle: Callable[[], Result] | None = None,
    rows: tuple[Model, Collection[Any]] | None = None,
) -> Result:
    """Return what ``work`` returns, done in one transaction on ``using``, which waits for no lock for long.

    Inside a transaction of the caller its errors are the database's own: whoever began it tries again, or not.

    Args:
        settle: as ``retrying`` says.
        rows: which are changed, a model and primary keys, so that the error can say who has them locked.

    Raises:
        RowLocked: nothing was changed.
        DatabaseUnavailable: the database did not answer; nothing was changed, or it is not known.
    """
    connection = connections[using]

    def send() -> Result:
        with brief_transaction(connection):
            return work()

    def locked() -> NoReturn:
        raise locked_row(using, rows)

    return retrying(connection, send, settle=settle, busy=None if connection.in_atomic_block else locked)


def locked_row(using: str, rows: tuple[Model, Collection[Any]] | None = None) -> RowLocked:
    """Return the error that says that one of these rows is locked, and by whom, as far as that can be seen."""
    return row_locked(using, sentence(using, *rows) if rows else "")
