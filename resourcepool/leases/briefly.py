"""Changes that an operator waits for: a holder in the middle of a long transaction must not keep them waiting."""

import contextlib
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from django.db import DatabaseError, connections

from resourcepool import dialect
from resourcepool.dialect import Trouble, brief_transaction
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
            raise locked_row(using) from error
        raise


def locked_row(using: str, locked: int = 1, done: int = 0) -> RowLocked:
    """Return the error that says that rows are locked, who may have done so, and to how many others it was done."""
    if done or locked > 1:
        return RowLocked(
            f"database {using!r}: {locked} locked by somebody's transaction, perhaps the holder's (guard); {done} done;"
            " try again in a moment",
            done,
        )
    return RowLocked(
        f"database {using!r}: a row is locked by somebody's transaction, perhaps its holder's (guard); try again in"
        " a moment"
    )
