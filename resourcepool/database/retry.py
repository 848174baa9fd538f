"""Sends a statement: each try is followed by another one after a transient database error.

Only ever around a whole transaction: inside a caller's transaction the first error already decides, and
swallowing one there has been seen to commit half the work (docs/databases.md).
"""

import logging
import random
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.clock import monotonic
from resourcepool.database.timeouts import StatementAttempt
from resourcepool.dialect import ErrorKind
from resourcepool.events import sentence_for
from resourcepool.exceptions import DatabaseUnavailable, NotMigrated, ResourcePoolError

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

TRIES = 6
TRIES_FOR = 3.0  # seconds after which no further try is made
BROKEN_OFF = "can't change 'autocommit' now"  # psycopg: the answer to a COMMIT was not waited for


class Unsettled(Exception):
    """Raised by ``settle``: the statement did not take effect; send it again."""


def retrying(
    connection: BaseDatabaseWrapper,
    send: Callable[[], Result],
    *,
    settle: Callable[[], Result] | None = None,
    busy: Callable[[], Result] | None = None,
) -> Result:
    """Call ``send`` until it succeeds: a few times, with growing random pauses, for ``TRIES_FOR``.

    Args:
        settle: called after a lost connection, when ``send`` may or may not have been committed; finds out, and
            returns the result, or raises ``Unsettled`` to send again. Without it, ``send`` must be safe to
            repeat.
        busy: the result if another transaction has the row locked, instead of another try.

    Raises:
        DatabaseUnavailable: the last try failed, too, or the database refuses.
        NotMigrated: the table, or a column of it, does not exist.
    """
    is_callers, unsure, gives_up_at = connection.in_atomic_block, False, monotonic() + TRIES_FOR
    handled = sys.exc_info()[1]
    try:
        for turn in range(TRIES):
            this = StatementAttempt(connection)
            try:
                with this:
                    if unsure and settle:
                        try:
                            return settle()
                        except Unsettled:
                            unsure = False
                    return send()
            except (DatabaseError, InterfaceError) as error:
                if (signal := _hidden_by(error, connection, handled)) is not None:
                    raise signal from None
                error_kind = dialect.error_kind(connection, error)
                if error_kind is ErrorKind.BUSY and busy is not None:
                    return busy()
                unsure = unsure or error_kind is ErrorKind.DISCONNECTED
                refuses = error_kind in (ErrorKind.REFUSED, ErrorKind.LOGIN)
                is_last = turn == TRIES - 1 or (refuses and not unsure)
                _raise_if_final(
                    connection, error, error_kind, this, is_last=is_last or monotonic() > gives_up_at
                )
                time.sleep(random.uniform(0, 0.03 * 2**turn))  # noqa: S311 (jitter, not a secret)
    except (DatabaseError, InterfaceError, ResourcePoolError, Unsettled):
        raise
    except BaseException:
        # Raised by a signal handler, perhaps between the driver's BEGIN or COMMIT and Django's record of it.
        if not is_callers:  # also if it is still in ours: Python may leave that later
            dialect.close_quietly(connection)
        raise
    raise AssertionError("unreachable")


def _hidden_by(
    error: Exception, connection: BaseDatabaseWrapper, handled: BaseException | None
) -> BaseException | None:
    """Return what a signal handler raised if ``error`` came of that: Django ends a transaction whose COMMIT has begun.

    Drivers raise errors because of others of their own, so that may be any Exception only where it is certain. What is
    ``handled`` already is none of ours.
    """
    found, is_certain = error.__context__, BROKEN_OFF in str(error)
    of_driver: type[Exception] = connection.Database.Error  # type: ignore[attr-defined]
    while found is not None and found is not handled:
        if not isinstance(found, Exception) or (is_certain and not isinstance(found, of_driver)):
            return found
        found = found.__context__
    return None


def _raise_if_final(
    connection: BaseDatabaseWrapper,
    error: Exception,
    error_kind: ErrorKind | None,
    this: "StatementAttempt",
    *,
    is_last: bool,
) -> None:
    """Raise, unless the statement may be sent again."""
    said = _said("database", connection, error, this)
    if error_kind is ErrorKind.NOT_MIGRATED:
        raise NotMigrated(_said("not_migrated", connection, error, this)) from error
    if error_kind is None or connection.in_atomic_block:
        raise error
    if error_kind is ErrorKind.DISCONNECTED:
        dialect.close_quietly(connection)  # the driver may have closed it already, and then raises
    if is_last or this.is_over:
        final = DatabaseUnavailable(said)
        final.is_login = error_kind is ErrorKind.LOGIN
        raise final from error
    logger.debug("%s; trying again", said)


def fetch_rows(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> list[Any]:
    """Return the rows of this SELECT; raises as ``retrying``."""
    return retrying(connection, partial(dialect.run, connection, sql, params, dialect.all_rows))


def _said(code: str, connection: BaseDatabaseWrapper, error: Exception, this: "StatementAttempt") -> str:
    """Return the database and its error message, without the excerpt of the statement that PostgreSQL adds."""
    said, _, _ = str(error).partition("\nLINE ")
    late = f" (no answer within {this.limit:g} s)" if this.is_over else ""
    return sentence_for(code, alias=repr(connection.alias), error=f"{said}{late}")
