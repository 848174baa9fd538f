"""Sends one statement, on MariaDB prepared if a session sends it often; pieces of SQL that are composed once."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeVar, TypeVarTuple

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.conf import setting
from resourcepool.db.dialect.connections import close_quietly, of
from resourcepool.db.dialect.driver import Reply, is_plain, send

Args = TypeVarTuple("Args")
Made = TypeVar("Made")
Result = TypeVar("Result")

MAX_PREPARED = 12  # statements per session, enough to wait and work; a server's total limit is 16,382
MAX_COUNTED = 256  # statements per session whose uses are counted
# Unknown name (e.g. a proxy switched the session), or a table that is altered repeatedly. Nothing was executed.
GONE = {1243, 1615}
REFUSED = {1295, 1461}  # this statement cannot be prepared; the server's limit is reached

_PLACE = re.compile(r"%\((\w+)\)s|%s|%%")

Params = Sequence[Any] | Mapping[str, Any]


class _Plan:
    """The PREPARE and EXECUTE statements for one text.

    Attributes:
        plain: the text as the driver wants it, with positional parameters.
        names: the parameters' names in the order of the text; empty if they are positional.
    """

    __slots__ = ("call", "names", "plain", "prepare", "text")

    def __init__(self, sql: str, database: str) -> None:
        self.names: list[str] = []
        self.text = _PLACE.sub(self._mark, sql)
        self.plain = _PLACE.sub(lambda match: "%%" if match[0] == "%%" else "%s", sql)
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

    On MariaDB, preparing saves a quarter of the server's work for a claim and its release. Elsewhere it gains nothing:
    MySQL's EXECUTE takes only variables, and setting them costs what it saves (measured on 9.7); Django keeps psycopg
    from preparing; SQLite's driver does it itself.

    The cursor is kept, because making one costs half a statement.

    Attributes:
        driver: the driver's session object.
        prepare_after: number of uses after which a statement is prepared; short sessions prepare none.
    """

    prepare_after: ClassVar[int] = 4

    def __init__(self, connection: BaseDatabaseWrapper, *, can_prepare: bool) -> None:
        self._cursor: Any = connection.cursor()  # opens the session
        self.driver = connection.connection
        self._connection = connection
        self._uses: dict[str, int] = {}
        self._plans: dict[str, _Plan] = {}
        self._is_closed = not can_prepare
        self._is_plain = can_prepare and is_plain(self._cursor)

    def execute(self, sql: str, params: Params) -> Reply:
        """Send ``sql``, prepared if it is sent often, and return the answer."""
        if self._connection.execute_wrappers:
            return self._send(sql, params)
        if (prepared := self._plans.get(sql) or self._prepared(sql)) is not None:
            try:
                return self._send_directly(prepared.call, prepared.in_order(params))
            except OperationalError as error:
                if error.args[0] not in GONE:
                    raise
                self.close()
        if not self._is_plain:
            return self._send(sql, params)
        plan = _plan(sql, self._connection.settings_dict["NAME"])
        return self._send_directly(plan.plain, plan.in_order(params))

    def close(self) -> None:
        """Send all statements unprepared from now on."""
        self._is_closed = True
        self._plans.clear()

    def _send_directly(self, sql: str, values: Sequence[Any]) -> Reply:
        return send(self._connection, sql, values) if self._is_plain else self._send(sql, values)

    def _send(self, sql: str, params: Params) -> Reply:
        # Removed while in use, because a signal handler that acquires or releases needs another one.
        cursor, self._cursor = self._cursor or self._connection.cursor(), None
        cursor.execute(sql, params)
        reply = Reply.of_cursor(cursor.cursor.cursor)
        self._cursor = cursor
        return reply

    def _prepared(self, sql: str) -> _Plan | None:
        """Prepare this text if it is sent often and the limit is not reached."""
        if not self._is_frequent(sql) or "?" in sql or len(self._plans) >= MAX_PREPARED:
            return None
        if not setting("PREPARED_STATEMENTS"):
            self.close()
            return None
        plan = _plan(sql, self._connection.settings_dict["NAME"])
        try:
            self._send_directly(plan.prepare, [plan.text])
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


@dataclass(frozen=True, slots=True)
class Where:
    """SQL text and its parameters. A condition begins with " AND ", or is empty for "any row"."""

    sql: str = ""
    params: tuple[Any, ...] = ()


ANY_ROW = Where()

SESSION = "_resourcepool_session"  # our attributes on Django's connection objects
CURSOR = "_resourcepool_cursor"
LATEST = "_resourcepool_latest"  # the statement sent last
OUT_OF_SYNC = 2014  # the MySQL driver's error code for "commands out of sync"


def run(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
    read: Callable[[Any], Result],
) -> Result:
    """Execute ``sql`` on ``connection`` and return ``read(cursor)``, or on MySQL ``read(reply)``."""
    if connection.vendor != "mysql" or connection.force_debug_cursor:
        if connection.vendor == "postgresql" and not connection.queries_logged:
            return _run_with_kept_cursor(connection, sql, params, read)
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return read(cursor)
    connection.close_if_health_check_failed()
    session: Session | None = connection.__dict__.get(SESSION)
    if session is None or session.driver is not connection.connection:
        session = _new_session(connection)
    connection.__dict__[LATEST] = this = object()
    try:
        reply = session.execute(sql, params)
    except (DatabaseError, InterfaceError):
        raise
    except BaseException:  # a signal handler's: the next statement would get the unread reply
        if not connection.in_atomic_block:
            close_quietly(connection)
        raise
    if connection.__dict__[LATEST] is not this:
        # The driver reads the row count and the last insert id after the reply; they may belong to a statement that a
        # signal handler sent in between.
        raise OperationalError(OUT_OF_SYNC, "a signal handler sent a statement before the reply was read")
    return read(reply)


def _run_with_kept_cursor(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
    read: Callable[[Any], Result],
) -> Result:
    """Use the same cursor again: with psycopg, making one takes a third of a small statement's processor time."""
    connection.close_if_health_check_failed()
    # Removed while in use, because a signal handler that acquires or releases needs another one.
    cursor = connection.__dict__.pop(CURSOR, None)
    if cursor is None or cursor.cursor.connection is not connection.connection:
        cursor = connection.cursor()
    cursor.execute(sql, params)
    result = read(cursor)
    connection.__dict__[CURSOR] = cursor
    return result


def all_rows(cursor: Any) -> list[Any]:
    """Return all rows of the answer."""
    return list(cursor.fetchall())


def first_row(cursor: Any) -> Any:
    """Return the first row of the answer; None if there is none."""
    return cursor.fetchone()


def row_count(cursor: Any) -> int:
    """Return how many rows the statement matched."""
    return int(cursor.rowcount)


def run_for_number(
    connection: BaseDatabaseWrapper,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any],
    read: Callable[[Any], int | None],
) -> int | None:
    """``run`` a statement that returns a fence or a key, which is never 0."""
    number = run(connection, sql, params, read)
    if number == 0:  # MariaDB and MySQL do not send it if the table has a trigger
        ((number,),) = run(connection, "SELECT LAST_INSERT_ID()", (), all_rows)
    return number


def _new_session(connection: BaseDatabaseWrapper) -> Session:
    """Return the session of this MySQL connection, after it was opened; cached, because making one takes time."""
    can_prepare = not connection.queries_logged and of(connection).can_prepare(connection)
    session = connection.__dict__[SESSION] = Session(connection, can_prepare=can_prepare)
    return session


def cached_per_database(
    make: Callable[[BaseDatabaseWrapper, *Args], Made],
) -> Callable[[BaseDatabaseWrapper, *Args], Made]:
    """Return ``make`` with a cache: one result for each database and further arguments."""
    results: dict[Any, Made] = {}

    def cached(connection: BaseDatabaseWrapper, *args: *Args) -> Made:
        which = (connection.vendor, connection.alias, args)
        try:
            return results[which]
        except KeyError:
            made = results[which] = make(connection, *args)
            return made

    return cached
