"""Transactions of a caller that has locked a row: should its host vanish, the server has to notice."""

import contextlib
import math
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.supported import of

ENDING = "set_autocommit"  # what Django calls at the end of a transaction, whatever its end


def limit_idle(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Have the server end this session if it is silent for so long within the transaction that is open in it.

    What was set before is back after the transaction, and stays if it is less. MySQL and SQLite have no such limit.
    """
    limit = of(connection).limit_idle(connection)
    if limit is None:
        return
    within, remember, usual = limit
    is_first = ENDING not in vars(connection)
    if is_first and remember:
        _execute(connection, remember)
    _execute(connection, within, [math.ceil(seconds)])
    if is_first and usual:
        _at_its_end(connection, usual)


def _at_its_end(connection: BaseDatabaseWrapper, usual: str) -> None:
    session, end = connection.connection, connection.set_autocommit

    def end_and_restore(autocommit: bool, *more: Any, **options: Any) -> None:
        try:
            end(autocommit, *more, **options)
        finally:
            if autocommit:
                vars(connection).pop(ENDING, None)
                # When the session is lost, so is what was set in it.
                if connection.connection is session:
                    with contextlib.suppress(DatabaseError, InterfaceError):
                        _execute(connection, usual)

    setattr(connection, ENDING, end_and_restore)


def _execute(connection: BaseDatabaseWrapper, sql: str, params: Any = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
