"""Statements that a session sends often are sent by name: the server need not read and resolve their texts again.

On MariaDB that takes a quarter off what a claim and its release cost the server. Elsewhere there is nothing to gain, or
no way: MySQL's EXECUTE takes variables only, Django keeps psycopg from preparing, SQLite's driver does it by itself.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from django.db import DatabaseError, OperationalError

from resourcepool.conf import setting

MOST = 8  # texts of one session: as many as one waits and works with; a server has room for 16,382 of all its sessions
COUNTED = 256  # texts of one session whose uses are counted
# There is no such name, as when a proxy has given the client another session of the server's; or a table is altered
# again and again. Nothing has been executed.
GONE = {1243, 1615}
REFUSED = {1295, 1461}  # this statement cannot be prepared; the server has no room for more

_PLACE = re.compile(r"%\((\w+)\)s|%s|%%")

Params = Sequence[Any] | Mapping[str, Any]


class _Plan:
    """How a text is prepared, and how it is sent by name."""

    __slots__ = ("_names", "call", "prepare", "text")

    def __init__(self, sql: str, database: str) -> None:
        self._names: list[str] = []
        self.text = _PLACE.sub(self._mark, sql)
        # In every session this name stands for this text in this database: the server executes a statement in the
        # database in which it was prepared.
        name = f"resourcepool_{hashlib.sha256(f'{database} {self.text}'.encode()).hexdigest()[:24]}"
        places = ", ".join(["%s"] * self.text.count("?"))
        self.prepare = f"PREPARE {name} FROM %s"
        self.call = f"EXECUTE {name} USING {places}" if places else f"EXECUTE {name}"

    def in_order(self, params: Params) -> Sequence[Any]:
        """Return the parameters in the order of their places in the text."""
        return [params[name] for name in self._names] if isinstance(params, Mapping) else params

    def _mark(self, found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        if found[1]:
            self._names.append(found[1])
        return "?"


_plan = lru_cache(1_000)(_Plan)


class Prepared:
    """What one session has prepared.

    Attributes:
        often: after so many uses a text is prepared; a session that lasts for one web request prepares none.
    """

    often: ClassVar[int] = 8

    def __init__(self, database: str) -> None:
        self._database = database
        self._uses: dict[str, int] = {}
        self._plans: dict[str, _Plan] = {}
        self._is_closed = False

    def execute(self, cursor: Any, sql: str, params: Params) -> None:
        """Execute ``sql`` on ``cursor``, which is one of this session: by name, if it has been sent often."""
        plan = self._plans.get(sql) or self._prepared(cursor, sql)
        if plan is not None:
            try:
                cursor.execute(plan.call, plan.in_order(params))
            except OperationalError as error:
                if error.args[0] not in GONE:
                    raise
                self.close()
            else:
                return
        cursor.execute(sql, params)

    def close(self) -> None:
        """Send everything as a text from now on."""
        self._is_closed = True
        self._plans.clear()

    def _prepared(self, cursor: Any, sql: str) -> _Plan | None:
        """Prepare this text, if it has been sent often and there is room."""
        if not self._is_often(sql) or "?" in sql or len(self._plans) >= MOST:
            return None
        if not setting("PREPARED_STATEMENTS"):
            self.close()
            return None
        plan = _plan(sql, self._database)
        try:
            cursor.execute(plan.prepare, [plan.text])
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
        return uses > self.often
