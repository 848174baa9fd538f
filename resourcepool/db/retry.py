"""Retries a statement after transient database errors.

Only around a whole transaction: inside a caller's transaction the first error is raised, because retrying there could
commit half of the work (docs/operations/databases.md).
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

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import ErrorKind
from resourcepool.db.timeouts import StatementAttempt
from resourcepool.events import sentence_for
from resourcepool.exceptions import DatabaseUnavailable, NotMigrated, ResourcePoolError

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

TRIES = 6
TRIES_FOR = 3.0  # seconds after which no further attempt is made
INTERRUPTED_COMMIT = "can't change 'autocommit' now"  # psycopg's error after an interrupted COMMIT


class Unsettled(Exception):
    """Raised by ``settle``: the statement did not take effect, so send it again."""


def retrying(
    connection: BaseDatabaseWrapper,
    send: Callable[[], Result],
    *,
    settle: Callable[[], Result] | None = None,
    busy: Callable[[], Result] | None = None,
) -> Result:
    """Call ``send`` until it succeeds: up to ``TRIES`` times within ``TRIES_FOR``, with growing random pauses.

    Args:
        settle: called after a lost connection, when ``send`` may or may not have been committed: it finds out and
            returns the result, or raises ``Unsettled`` to send again. Without it, ``send`` must be idempotent.
        busy: called for the result if another transaction locks the row, instead of another attempt.

    Raises:
        DatabaseUnavailable: the last attempt failed, too, or the database refuses.
        NotMigrated: the table or a column does not exist.
    """
    is_callers, unsure, gives_up_at = connection.in_atomic_block, False, monotonic() + TRIES_FOR
    handled = sys.exc_info()[1]
    try:
        for turn in range(TRIES):
            attempt = StatementAttempt(connection)
            try:
                try:
                    if unsure and settle:
                        try:
                            return settle()
                        except Unsettled:
                            unsure = False
                    return send()
                finally:
                    attempt.close()
            except (DatabaseError, InterfaceError) as error:
                if (cause := _signal_handlers_exception(error, connection, handled)) is not None:
                    raise cause from None
                kind = dialect.error_kind(connection, error)
                if kind is ErrorKind.BUSY and busy is not None:
                    return busy()
                unsure = unsure or kind is ErrorKind.DISCONNECTED
                refuses = kind in (ErrorKind.REFUSED, ErrorKind.LOGIN)
                pause = random.uniform(0, 0.03 * 2**turn)  # noqa: S311 (jitter, not a secret)
                again_at = monotonic() + pause
                is_last = turn == TRIES - 1 or (refuses and not unsure) or again_at > gives_up_at
                is_last = is_last or (attempt.ends_by is not None and again_at > attempt.ends_by())
                _raise_if_final(connection, error, kind, attempt, is_last=is_last)
                time.sleep(pause)
    except (DatabaseError, InterfaceError, ResourcePoolError, Unsettled):
        raise
    except BaseException:
        # A signal handler's exception, perhaps between the driver's BEGIN or COMMIT and Django's record of it.
        if not is_callers:  # even if our own block is still open: Python may leave it later
            dialect.close_quietly(connection)
        raise
    raise AssertionError("unreachable")


def _signal_handlers_exception(
    error: Exception, connection: BaseDatabaseWrapper, handled: BaseException | None
) -> BaseException | None:
    """Return the signal handler's exception that caused this driver error, if any.

    Drivers chain their own errors, so an ``Exception`` counts only if the COMMIT was certainly interrupted. Errors
    before ``handled`` are the caller's.
    """
    cause, is_certain = error.__context__, INTERRUPTED_COMMIT in str(error)
    driver_error: type[Exception] = connection.Database.Error  # type: ignore[attr-defined]
    while cause is not None and cause is not handled:
        if not isinstance(cause, Exception) or (is_certain and not isinstance(cause, driver_error)):
            return cause
        cause = cause.__context__
    return None


def _raise_if_final(
    connection: BaseDatabaseWrapper,
    error: Exception,
    kind: ErrorKind | None,
    attempt: StatementAttempt,
    *,
    is_last: bool,
) -> None:
    message = _message("database", connection, error, attempt)
    if kind is ErrorKind.NOT_MIGRATED:
        raise NotMigrated(_message("not_migrated", connection, error, attempt)) from error
    if kind is None or connection.in_atomic_block:
        raise error
    if kind is ErrorKind.DISCONNECTED:
        dialect.close_quietly(connection)  # drivers may have closed it already
    if is_last or attempt.is_over:
        final = DatabaseUnavailable(message)
        final.is_login = kind is ErrorKind.LOGIN
        raise final from error
    logger.debug("%s; trying again", message)


def fetch_rows(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> list[Any]:
    """Return the rows of this SELECT; raises like ``retrying``."""
    return retrying(connection, partial(dialect.run, connection, sql, params, dialect.all_rows))


def _message(code: str, connection: BaseDatabaseWrapper, error: Exception, attempt: StatementAttempt) -> str:
    """Return the database and its error message, without PostgreSQL's excerpt of the statement."""
    text, _, _ = str(error).partition("\nLINE ")
    late = f" (no answer within {attempt.seconds:g} s)" if attempt.is_over else ""
    return sentence_for(code, alias=repr(connection.alias), error=f"{text}{late}")
