"""Changes that an operator waits for: a holder in the middle of a long transaction must not keep them waiting."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from django.db import connections

from resourcepool.dialect import brief_transaction
from resourcepool.exceptions import RowLocked
from resourcepool.leases.retry import retrying

Result = TypeVar("Result")


def briefly(using: str, work: Callable[[], Result], *, settle: Callable[[], Result] | None = None) -> Result:
    """Return what ``work`` returns, done in one transaction on ``using``, which waits for no lock for long.

    Inside a transaction of the caller its errors are the database's own: whoever began it tries again, or not.

    Args:
        settle: as ``retrying`` says.

    Raises:
        RowLocked: nothing was changed.
        DatabaseUnavailable: the database did not answer; nothing was changed, or it is not known.
    """
    connection = connections[using]

    def send() -> Result:
        with brief_transaction(connection):
            return work()

    def locked() -> NoReturn:
        raise locked_row(using)

    return retrying(connection, send, settle=settle, busy=None if connection.in_atomic_block else locked)


def locked_row(using: str) -> RowLocked:
    """Return the error that says that a row is locked, and who may have done so."""
    return RowLocked(
        f"database {using!r}: a row is locked by somebody's transaction, perhaps its holder's (guard); try again in"
        " a moment"
    )
