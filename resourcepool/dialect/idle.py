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

    What was set before is back after the transaction, and stays if it is less. MySQL and SQLite have no such limit, and
    neither has a transaction on MariaDB that was begun by turning autocommit off: nobody tells when it ends.
    """
    limit = of(connection).limit_idle(connection)
    if limit is None:
        return
    first, again, usual = limit
    if usual and not connection.commit_on_exit:
        return
    until_its_end = vars(connection).get(ENDING)
    if isinstance(until_its_end, _UntilItsEnd) and until_its_end.session is connection.connection:
        _execute(connection, again, [math.ceil(seconds)])
        return
    vars(connection).pop(ENDING, None)  # of a session that was closed in the middle of its transaction
    _execute(connection, first, [math.ceil(seconds)])
    if usual:
        setattr(connection, ENDING, _UntilItsEnd(connection, usual))


class _UntilItsEnd:
    """Stands in for what ends the transaction that is open in ``session``, and sets what is usual after that."""

    def __init__(self, connection: BaseDatabaseWrapper, usual: str) -> None:
        self.session, self._connection, self._usual = connection.connection, connection, usual

    def __call__(self, autocommit: bool, *more: Any, **options: Any) -> None:
        connection = self._connection
        if autocommit:
            vars(connection).pop(ENDING, None)
        try:
            type(connection).set_autocommit(connection, autocommit, *more, **options)
        finally:
            # When the session is lost, so is what was set in it.
            if autocommit and connection.connection is self.session:
                with contextlib.suppress(DatabaseError, InterfaceError):
                    _execute(connection, self._usual)


def _execute(connection: BaseDatabaseWrapper, sql: str, params: Any = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
