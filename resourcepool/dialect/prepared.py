"""Statements that a session sends often are sent by name: the server need not read and resolve their texts again.

On MariaDB that takes a quarter off what a claim and its release cost the server. Elsewhere there is nothing to gain, or
no way: MySQL's EXECUTE takes variables only, and to set them costs what it saves (measured on 9.7); Django keeps
psycopg from preparing; SQLite's driver does it by itself.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.conf import setting
from resourcepool.dialect.driver import Reply, is_plain, send

MOST = 8  # texts of one session: as many as one waits and works with; a server has room for 16,382 of all its sessions
COUNTED = 256  # texts of one session whose uses are counted
# There is no such name, as when a proxy has given the client another session of the server's; or a table is altered
# again and again. Nothing has been executed.
GONE = {1243, 1615}
REFUSED = {1295, 1461}  # this statement cannot be prepared; the server has no room for more

_PLACE = re.compile(r"%\((\w+)\)s|%s|%%")

Params = Sequence[Any] | Mapping[str, Any]


class _Plan:
    """How a text is prepared, and how it is sent by name.

    Attributes:
        names: the names of its parameters in the order of their places in the text; empty if they have none.
    """

    __slots__ = ("call", "names", "prepare", "text")

    def __init__(self, sql: str, database: str) -> None:
        self.names: list[str] = []
        self.text = _PLACE.sub(self._mark, sql)
        # In every session this name stands for this text in this database: the server executes a statement in the
        # database in which it was prepared.
        name = f"resourcepool_{hashlib.sha256(f'{database} {self.text}'.encode()).hexdigest()[:24]}"
        places = ", ".join(["%s"] * self.text.count("?"))
        self.prepare = f"PREPARE {name} FROM %s"
        self.call = f"EXECUTE {name} USING {places}" if places else f"EXECUTE {name}"

    def in_order(self, params: Params) -> Sequence[Any]:
        """Return the parameters in the order of their places in the text."""
        named: Any = params
        return [named[name] for name in self.names] if self.names else named

    def _mark(self, found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        if found[1]:
            self.names.append(found[1])
        return "?"


_plan = lru_cache(1_000)(_Plan)


class Session:
    """One session of MySQL's driver: what is prepared in it, and a cursor that stays open as long as that.

    Making a cursor costs half a statement.

    Attributes:
        driver: the driver's own session.
        often: after so many uses a text is prepared; a session that lasts for one web request prepares none.
    """

    prepare_after: ClassVar[int] = 8

    def __init__(self, connection: BaseDatabaseWrapper, *, can_prepare: bool) -> None:
        self._cursor: Any = connection.cursor()  # which begins the session
        self.driver = connection.connection
        self._connection = connection
        self._uses: dict[str, int] = {}
        self._plans: dict[str, _Plan] = {}
        self._is_closed = not can_prepare
        self._is_plain = can_prepare and is_plain(self._cursor)

    def execute(self, sql: str, params: Params) -> Reply:
        """Send ``sql``, by name if it has been sent often, and return the answer."""
        if not self._connection.execute_wrappers and (plan := self._plans.get(sql) or self._prepared(sql)):
            try:
                values = plan.in_order(params)
                return (
                    send(self._connection, plan.call, values)
                    if self._is_plain
                    else self._send(plan.call, values)
                )
            except OperationalError as error:
                if error.args[0] not in GONE:
                    raise
                self.close()
        return self._send(sql, params)

    def close(self) -> None:
        """Send everything as a text from now on."""
        self._is_closed = True
        self._plans.clear()

    def _send(self, sql: str, params: Params) -> Reply:
        # Taken away while it is in use: a signal handler that acquires or releases just then needs another one.
        cursor, self._cursor = self._cursor or self._connection.cursor(), None
        cursor.execute(sql, params)
        reply = Reply.of_cursor(cursor.cursor.cursor)
        self._cursor = cursor
        return reply

    def _prepared(self, sql: str) -> _Plan | None:
        """Prepare this text, if it has been sent often and there is room."""
        if not self._is_often(sql) or "?" in sql or len(self._plans) >= MOST:
            return None
        if not setting("PREPARED_STATEMENTS"):
            self.close()
            return None
        plan = _plan(sql, self._connection.settings_dict["NAME"])
        try:
            self._send(plan.prepare, [plan.text])
        except DatabaseError as error:
            if error.args[0] not in REFUSED:
                raise
            self.close()
            return None
        self._plans[sql] = plan
        return plan

    def _is_often(self, sql: str) -> bool:
        if self._is_closed or (sql not in self._uses and len(self._uses) >= COUNTED):
            return False
        uses = self._uses[sql] = self._uses.get(sql, 0) + 1
        return uses > self.prepare_after
