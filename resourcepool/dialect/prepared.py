"""Prepares statements that a session sends often, so that the database server need not parse them again.

On MariaDB this saves a quarter of the server's work for a claim and its release. Elsewhere it gains nothing: MySQL's
EXECUTE takes only variables, and setting them costs what it saves (measured on 9.7); Django keeps psycopg from
preparing; SQLite's driver does it itself.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.conf import setting

MAX_PREPARED = 12  # statements per session, enough to wait and work; a server's total limit is 16,382
MAX_COUNTED = 256  # statements per session whose uses are counted
# Unknown name (e.g. a proxy switched the session), or a table that is altered repeatedly. Nothing was executed.
GONE = {1243, 1615}
REFUSED = {1295, 1461}  # this statement cannot be prepared; the server's limit is reached
OUT_OF_SYNC = 2014  # the MySQL driver's error code for "commands out of sync"

_PLACE = re.compile(r"%\((\w+)\)s|%s|%%")

Params = Sequence[Any] | Mapping[str, Any]
Result = TypeVar("Result")


class _Plan:
    """The PREPARE and EXECUTE statements for one text.

    Attributes:
        names: the parameters' names in the order of the text; empty if they are positional.
    """

    __slots__ = ("call", "names", "prepare", "text")

    def __init__(self, sql: str, database: str) -> None:
        self.names: list[str] = []
        self.text = _PLACE.sub(self._mark, sql)
        # The name is unique for this text in this database, where the server executes the statement.
        name = f"resourcepool_{hashlib.sha256(f'{database} {self.text}'.encode()).hexdigest()[:24]}"
        places = ", ".join(["%s"] * self.text.count("?"))
        self.prepare = f"PREPARE {name} FROM %s"
        self.call = f"EXECUTE {name} USING {places}" if places else f"EXECUTE {name}"

    def in_order(self, params: Params) -> Sequence[Any]:
        """Return the parameters in the order of the text."""
        named: Any = params
        return [named[name] for name in self.names] if self.names else named

    def _mark(self, match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        if match[1]:
            self.names.append(match[1])
        return "?"


_plan = lru_cache(1_000)(_Plan)


class Session:
    """One session of MySQL's driver: its prepared statements, and an open cursor.

    The cursor is kept, because making one costs half a statement.

    Attributes:
        driver: the driver's session object.
        prepare_after: number of uses after which a statement is prepared; short sessions prepare none.
    """

    prepare_after: ClassVar[int] = 8

    def __init__(self, connection: BaseDatabaseWrapper, *, can_prepare: bool) -> None:
        self._cursor: Any = connection.cursor()  # opens the session
        self.driver = connection.connection
        self._connection = connection
        self._latest: object = None  # the statement sent last
        self._uses: dict[str, int] = {}
        self._plans: dict[str, _Plan] = {}
        self._is_closed = not can_prepare

    def execute(self, sql: str, params: Params, read: Callable[[Any], Result]) -> Result:
        """Send ``sql``, prepared if it is sent often, and return ``read(cursor)``."""
        if not self._connection.execute_wrappers and (plan := self._plans.get(sql) or self._prepared(sql)):
            try:
                return self._send(plan.call, plan.in_order(params), read)
            except OperationalError as error:
                if error.args[0] not in GONE:
                    raise
                self.close()
        return self._send(sql, params, read)

    def close(self) -> None:
        """Send all statements unprepared from now on."""
        self._is_closed = True
        self._plans.clear()

    def _send(self, sql: str, params: Params, read: Callable[[Any], Result]) -> Result:
        # Removed while in use, because a signal handler that acquires or releases needs another one.
        cursor, self._cursor = self._cursor or self._connection.cursor(), None
        self._latest = this = object()
        cursor.execute(sql, params)
        if self._latest is not this:
            # The driver reads the row count and the last insert id after the reply; they may belong to a statement
            # that a signal handler sent in between.
            raise OperationalError(OUT_OF_SYNC, "a signal handler sent a statement before the reply was read")
        result = read(cursor.cursor.cursor)  # the driver's, because Django's takes longer
        self._cursor = cursor
        return result

    def _prepared(self, sql: str) -> _Plan | None:
        """Prepare this text if it is sent often and the limit is not reached."""
        if not self._is_frequent(sql) or "?" in sql or len(self._plans) >= MAX_PREPARED:
            return None
        if not setting("PREPARED_STATEMENTS"):
            self.close()
            return None
        plan = _plan(sql, self._connection.settings_dict["NAME"])
        try:
            self._send(plan.prepare, [plan.text], lambda cursor: None)
        except DatabaseError as error:
            if error.args[0] not in REFUSED:
                raise
            self.close()
            return None
        self._plans[sql] = plan
        return plan

    def _is_frequent(self, sql: str) -> bool:
        if self._is_closed or (sql not in self._uses and len(self._uses) >= MAX_COUNTED):
            return False
        uses = self._uses[sql] = self._uses.get(sql, 0) + 1
        return uses > self.prepare_after
