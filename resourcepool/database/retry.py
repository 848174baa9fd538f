"""Repeats a statement after a transient database error.

Only ever around a whole transaction: inside a caller's transaction the first error already decides, and
swallowing one there has been seen to commit half the work (docs/databases.md).
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.answers import Try
from resourcepool.database.clock import monotonic
from resourcepool.dialect import Trouble
from resourcepool.events import say
from resourcepool.exceptions import DatabaseUnavailable, NotMigrated, ResourcePoolError

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

TRIES = 6
TRIES_FOR = 3.0  # seconds after which no further try is made


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
    is_callers = connection.in_atomic_block
    try:
        return _tried(connection, send, settle, busy)
    except (DatabaseError, InterfaceError, ResourcePoolError, Unsettled):
        raise
    except BaseException:
        # Raised by a signal handler, perhaps between the driver's BEGIN or COMMIT and Django's record of it.
        if not is_callers:  # also if it is still in ours: Python may leave that later
            dialect.close_quietly(connection)
        raise


def _tried(
    connection: BaseDatabaseWrapper,
    send: Callable[[], Result],
    settle: Callable[[], Result] | None,
    busy: Callable[[], Result] | None,
) -> Result:
    unsure, gives_up_at = False, monotonic() + TRIES_FOR
    for turn in range(TRIES):
        this = Try(connection)
        try:
            with this:
                if unsure and settle:
                    try:
                        return settle()
                    except Unsettled:
                        unsure = False
                return send()
        except (DatabaseError, InterfaceError) as error:
            trouble = dialect.trouble(connection, error)
            if trouble is Trouble.NOT_MIGRATED:
                raise NotMigrated(_said("not_migrated", connection, error)) from error
            if trouble is Trouble.BUSY and busy is not None:
                return busy()
            if trouble is None or connection.in_atomic_block:
                raise
            if trouble is Trouble.DISCONNECTED:
                unsure = True
                dialect.close_quietly(connection)  # the driver may have closed it already, and then raises
            is_final = this.is_over or (trouble is Trouble.REFUSED and not unsure)
            said = _said("database", connection, error, this)
            if is_final or turn == TRIES - 1 or monotonic() > gives_up_at:
                raise DatabaseUnavailable(said) from error
            logger.debug("%s; trying again", said)
            time.sleep(random.uniform(0, 0.03 * 2**turn))  # noqa: S311 (jitter, not a secret)
    raise AssertionError("unreachable")


def rows_read(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> list[Any]:
    """Return the rows of this SELECT; raises as ``retrying``."""
    return retrying(connection, partial(dialect.run, connection, sql, params, dialect.all_rows))


def _said(code: str, connection: BaseDatabaseWrapper, error: Exception, this: Try | None = None) -> str:
    """Return the database and its error message, without the excerpt of the statement that PostgreSQL adds."""
    said, _, _ = str(error).partition("\nLINE ")
    late = f" (no answer within {this.limit:g} s)" if this and this.is_over else ""
    return say(code, alias=repr(connection.alias), error=f"{said}{late}")
