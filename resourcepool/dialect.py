"""The only file that knows which database it talks to: its clock, its fence arithmetic, its errors.

Facts and their sources are in docs/databases.md. Every SQL text here takes moments as whole microseconds.
"""

import contextlib
import os
from enum import Enum
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, InterfaceError, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import expressions

from resourcepool.exceptions import ResourcePoolError

LOCK_WAIT = 1  # whole seconds that a background thread waits for a locked row


class Dialect:
    """What differs between databases; one subclass each."""

    now = ""
    later = ""  # now plus %s microseconds
    indexed_now = ""  # the same clock, in the form that lets an index on a moment be used
    greatest = "GREATEST"
    true, false = "1", "0"
    next_fence = "{fence} + 1"
    returning = " RETURNING {fence}"
    micros_until = ""  # microseconds from now until the column {moment}
    lock_wait: str | None = None  # sets how long this session waits for a row, in whole seconds
    timeouts: dict[str, Any] = {}

    def claim_at_once(self, connection: BaseDatabaseWrapper, update: str, table: str, pk: str) -> str:
        """Return ``update`` (WHERE the key {pk} = %s ..) so that it fails or finds nothing if the row is locked."""
        return update

    def fence_after_update(self, cursor: Any) -> int | None:
        """Return the fence that the claim just executed on ``cursor`` was granted, or None if it lost."""
        row = cursor.fetchone()
        return None if row is None else int(row[0])


class MySQL(Dialect):
    """MariaDB and MySQL. Neither has UPDATE .. RETURNING, so the fence travels as the last insert id."""

    now = indexed_now = "UTC_TIMESTAMP(6)"
    later = "UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND"
    next_fence = "LAST_INSERT_ID({fence} + 1)"
    returning = ""
    micros_until = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), {moment})"
    lock_wait = "SET SESSION innodb_lock_wait_timeout = %s"
    timeouts = {"connect_timeout": 3, "read_timeout": 3, "write_timeout": 3}

    def claim_at_once(self, connection: BaseDatabaseWrapper, update: str, table: str, pk: str) -> str:
        # MySQL has no such thing; there innodb_lock_wait_timeout of the session decides (docs/databases.md).
        return f"SET STATEMENT innodb_lock_wait_timeout = 0 FOR {update}" if _is_mariadb(connection) else update

    def fence_after_update(self, cursor: Any) -> int | None:
        # LAST_INSERT_ID keeps its old value after a lost race: the row count has to be asked first.
        return int(cursor.lastrowid) if cursor.rowcount == 1 else None


class PostgreSQL(Dialect):
    """PostgreSQL. ``now()`` is the start of the transaction, so it is not used."""

    now = "CLOCK_TIMESTAMP()"
    true, false = "TRUE", "FALSE"
    indexed_now = "STATEMENT_TIMESTAMP()"
    later = "CLOCK_TIMESTAMP() + %s * INTERVAL '1 microsecond'"
    micros_until = "CAST(EXTRACT(EPOCH FROM ({moment} - STATEMENT_TIMESTAMP())) * 1000000 AS bigint)"
    lock_wait = """
        SELECT SET_CONFIG('lock_timeout', %s * 1000 || 'ms', false), SET_CONFIG('statement_timeout', '5s', false)
    """
    timeouts = {
        "connect_timeout": 3,
        "tcp_user_timeout": 3_000,
        "keepalives_idle": 3,
        "keepalives_interval": 1,
        "keepalives_count": 3,
    }

    def claim_at_once(self, connection: BaseDatabaseWrapper, update: str, table: str, pk: str) -> str:
        unlocked = f"(SELECT {pk} FROM {table} WHERE {pk} = %s FOR UPDATE SKIP LOCKED)"  # noqa: S608 (quoted names)
        return update.replace(f"{pk} = %s", f"{pk} = {unlocked}", 1)


class SQLite(Dialect):
    """SQLite. Moments are text; its clock counts milliseconds."""

    now = indexed_now = "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'now')"
    later = "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'now', (%s / 1000000.0) || ' seconds')"
    greatest = "MAX"
    micros_until = "CAST(ROUND((JULIANDAY({moment}) - JULIANDAY('now')) * 86400000000) AS INTEGER)"
    timeouts = {"timeout": 2}


_DIALECTS: dict[str, Dialect] = {"mysql": MySQL(), "postgresql": PostgreSQL(), "sqlite": SQLite()}


def supports(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether this package runs on the database of ``connection``."""
    return connection.vendor in _DIALECTS


def of(connection: BaseDatabaseWrapper) -> Dialect:
    """Return the dialect of ``connection``; raises ResourcePoolError for a database that is not supported."""
    try:
        return _DIALECTS[connection.vendor]
    except KeyError:
        supported = "MySQL/MariaDB, PostgreSQL and SQLite"
        raise ResourcePoolError(
            f"database {connection.alias!r} is {connection.vendor}; resourcepool runs on {supported}"
        ) from None


class DbNow(expressions.Func):
    """The database's UTC clock in a queryset. Django's own ``Now()`` is the session's local time on MySQL."""

    output_field = models.DateTimeField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        return of(connection).indexed_now, ()


class DbLater(expressions.Func):
    """The database's UTC clock plus ``seconds``, in a queryset."""

    output_field = models.DateTimeField()

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        return of(connection).later, (micros(self.seconds),)


class MicrosUntil(expressions.Func):
    """Whole microseconds from the database's now until a moment column; negative once it has passed."""

    output_field = models.BigIntegerField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        (moment,) = self.get_source_expressions()
        sql, params = compiler.compile(moment)
        return of(connection).micros_until.format(moment=sql), tuple(params)


if TYPE_CHECKING:
    CharField = models.CharField[Any, Any]
else:  # Django's fields take no type parameters when they run
    CharField = models.CharField


class KeyField(CharField):
    """Text that is compared byte by byte on every database; MySQL's default collation would ignore case."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql":
            parameters["collation"] = "utf8mb4_bin"
        return parameters


def _is_mariadb(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "mysql_is_mariadb", False))


def micros(seconds: float) -> int:
    """Return ``seconds`` as whole microseconds."""
    return round(seconds * 1_000_000)


class Trouble(Enum):
    """What a failed statement means for whoever sent it."""

    CONFLICT = "conflict"  # rolled back, or the whole database is locked: send it again
    BUSY = "busy"  # somebody holds the row: send it again, or do without
    DISCONNECTED = "disconnected"  # nobody knows whether it took effect: reconnect and look
    NO_TABLE = "no table"


_MYSQL_CODES = {
    **dict.fromkeys((1213, 1020), Trouble.CONFLICT),
    **dict.fromkeys((1205, 1317, 1969, 3024, 3572), Trouble.BUSY),
    **dict.fromkeys(
        (
            1040,
            1053,
            1077,
            1079,
            1158,
            1159,
            1160,
            1161,
            1290,
            1836,
            1927,
            2002,
            2003,
            2005,
            2006,
            2013,
            2055,
            4031,
        ),
        Trouble.DISCONNECTED,
    ),
    1146: Trouble.NO_TABLE,
}
_POSTGRES_STATES = {
    **dict.fromkeys(("40001", "40P01"), Trouble.CONFLICT),
    **dict.fromkeys(("55P03", "57014"), Trouble.BUSY),
    **dict.fromkeys(("53300", "57P01", "57P02", "57P03", "57P05", "25006", "25P03"), Trouble.DISCONNECTED),
    "42P01": Trouble.NO_TABLE,
}


def trouble(connection: BaseDatabaseWrapper, error: Exception) -> Trouble | None:
    """Return what ``error``, raised by a statement on ``connection``, means; None when retrying cannot help."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    if connection.vendor == "mysql":
        return _mysql_trouble(error)
    if connection.vendor == "postgresql":
        return _postgres_trouble(error)
    return _sqlite_trouble(error)


def _mysql_trouble(error: Exception) -> Trouble | None:
    code = error.args[0] if error.args else None
    if isinstance(error, InterfaceError) and code in (0, None):
        return Trouble.DISCONNECTED
    return _MYSQL_CODES.get(code) if isinstance(code, int) else None


def _postgres_trouble(error: Exception) -> Trouble | None:
    cause = error.__cause__
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if state:
        return Trouble.DISCONNECTED if state.startswith("08") else _POSTGRES_STATES.get(state)
    message = str(error)
    # A refused login carries no SQLSTATE either, and does not get better by trying again.
    refused = "authentication failed" in message or "does not exist" in message
    lost = isinstance(error, InterfaceError) or type(error).__name__ == "OperationalError"
    return Trouble.DISCONNECTED if lost and not refused else None


def _sqlite_trouble(error: Exception) -> Trouble | None:
    message = str(error)
    if "locked" in message or "busy" in message:
        return Trouble.CONFLICT
    return Trouble.NO_TABLE if "no such table" in message else None


def private_connection(alias: str) -> BaseDatabaseWrapper:
    """Return a new connection to ``alias`` for one background thread, with short timeouts."""
    connection = connections.create_connection(alias)
    dialect = of(connection)
    options = {**connection.settings_dict["OPTIONS"], **dialect.timeouts}
    options.pop("pool", None)
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": options, "CONN_MAX_AGE": None}
    initialise = connection.init_connection_state

    def initialise_and_limit() -> None:
        initialise()
        driver = connection.connection
        if hasattr(driver, "fileno"):
            _descriptors[id(driver)] = driver.fileno()
        if dialect.lock_wait:
            with connection.cursor() as cursor:
                cursor.execute(dialect.lock_wait, [LOCK_WAIT])

    # Django has no per-connection hook; the connection_created signal would reach every connection.
    setattr(connection, "init_connection_state", initialise_and_limit)  # noqa: B010
    _private.append(connection)
    return connection


def close_quietly(connection: BaseDatabaseWrapper) -> None:
    """End the session of ``connection``, whatever state it is in."""
    _descriptors.pop(id(connection.connection), None)
    with contextlib.suppress(DatabaseError, InterfaceError):
        connection.close()


def close_files() -> None:
    """Just before a fork: close the SQLite files that this thread has open and is in no transaction on.

    A child inherits what the library remembers of its locks on a file, but not the locks. The parent, seeing itself
    alone, would remove the log when it closes, and with it what the child has committed (howtocorrupt.html, 2.6).
    """
    for connection in connections.all(initialized_only=True):
        idle = not connection.in_atomic_block and connection.autocommit
        if connection.vendor == "sqlite" and idle and not _lives_in_memory(connection):
            close_quietly(connection)


def abandon_inherited_connections() -> None:
    """In a forked child: let go of the parent's connections without a word to the server.

    Parent and child share the socket. Used by both it mixes up replies; closed by the child it logs the
    parent out. So the child's end is pointed at /dev/null and the next query connects anew.
    """
    ours = [
        connection for connection in connections.all(initialized_only=True) if not connection.in_atomic_block
    ]
    for connection in [*ours, *_private]:
        driver = connection.connection
        if driver is None or _lives_in_memory(connection):
            continue
        _abandoned.append(driver)
        connection.connection = None
        # A driver whose thread was in the middle of a statement refuses to tell; private ones were asked before.
        with contextlib.suppress(Exception):
            _point_at_nothing(_descriptors.get(id(driver)) or driver.fileno())
    _private.clear()


# Strong references: collecting a connection of the parent's threads in a child would close it.
_private: list[BaseDatabaseWrapper] = []
_abandoned: list[Any] = []
_descriptors: dict[int, int] = {}  # of private connections: {id of the driver's connection: its socket}


def _lives_in_memory(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "is_in_memory_db", lambda: False)())


def _point_at_nothing(descriptor: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)
