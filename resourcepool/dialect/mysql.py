"""MariaDB and MySQL."""

import re
from typing import Any

from django.db import DatabaseError, DataError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.base import Dialect, ErrorKind, RowUpdate, unlisted

_DISCONNECTED = (
    *(1040, 1053, 1077, 1079, 1158, 1159, 1160, 1161, 1203, 1226, 1290, 1836, 1927),  # the server's
    *(3032, 3168, 3169),  # MySQL's: offline, not ready, the session was killed
    3100,  # MySQL's group replication: this member has left the group in the middle of a commit
    *(2002, 2003, 2005, 2006, 2013, 2055, 4031),  # the driver's
    2014,  # out of step: a signal interrupted the thread that was to read the reply
)
_CODES = {
    # Of MySQL's group replication: another member changed the row first.
    **dict.fromkeys((1213, 1020, 3101), ErrorKind.CONFLICT),
    **dict.fromkeys((1205, 1317, 1969, 3024, 3572), ErrorKind.BUSY),
    **dict.fromkeys(_DISCONNECTED, ErrorKind.DISCONNECTED),
    **dict.fromkeys((1054, 1146), ErrorKind.NOT_MIGRATED),
    # No access to the database, wrong user or password, no such database, wrong plugin, expired or locked.
    **dict.fromkeys((1044, 1045, 1049, 1698, 1820, 1862, 3118, 4151), ErrorKind.LOGIN),
}
_NO_TEXT = (1267, 1300, 1366, 3988)  # text that a column, or the connection, cannot hold
EXISTS = 1062
_FOR_GOOD = (
    *_NO_TEXT,
    *(2059, 2061, 3159),  # a login method that the driver lacks, or that needs an encrypted connection
)

IN_TRANSACTION = 1568  # ER_CANT_CHANGE_TX_CHARACTERISTICS

# In the eyes of MySQL the least of a variable and a plain number is a decimal number, which no variable takes.
_LIMIT_IDLE = """SESSION wait_timeout =
    CAST(LEAST(@@SESSION.wait_timeout, COALESCE(%(idle)s, @@SESSION.wait_timeout)) AS UNSIGNED)"""
# MariaDB has limits for transactions alone, too, which count in place of that one where somebody has set them. What is
# in /*M! .. */ only MariaDB reads.
_OF_MARIADB = ("idle_transaction_timeout", "idle_write_transaction_timeout")


def _limit_idle(kept: str = "") -> str:
    """Return the assignments that limit silence to ``%(idle)s`` seconds, or less; ``kept`` has what was set before."""
    keep = f"@{kept} = @@SESSION.wait_timeout, " if kept else ""
    of_mariadb = ""
    for name in _OF_MARIADB:
        of_mariadb += f", @{kept}_{name} = @@SESSION.{name}" if kept else ""
        least = f"LEAST(@@SESSION.{name}, COALESCE(%(idle)s, @@SESSION.{name}))"
        of_mariadb += f", SESSION {name} = IF(@@SESSION.{name}, {least}, 0)"
    return f"{keep}{_LIMIT_IDLE} /*M!{of_mariadb} */"


def _usual_idle(kept: str) -> str:
    of_mariadb = "".join(f", SESSION {name} = @{kept}_{name}" for name in _OF_MARIADB)
    return f"SESSION wait_timeout = @{kept} /*M!{of_mariadb} */"


_IDLE = (
    f"SET {_limit_idle('resourcepool_guard_idle')}",
    f"SET {_limit_idle()}",
    f"SET {_usual_idle('resourcepool_guard_idle')}",
)
_AT_ONCE = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR "  # MariaDB's; on MySQL the least is a second


class MySQL(Dialect):
    """MariaDB and MySQL. Neither has UPDATE .. RETURNING, so the fence travels as the last insert id."""

    now = indexed_now = "UTC_TIMESTAMP(6)"
    later = "UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND"
    next_fence = "LAST_INSERT_ID({fence} + 1)"
    returning = ""
    binary_param = "BINARY %s"
    micros_now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
    micros_until = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), {moment})"
    null_in_order = "NULL"  # named itself, the column has the rows sorted
    # For row values no index is used.
    not_before = "({first} > {one} OR {first} = {one} AND {second} >= {other})"
    by_index = " FORCE INDEX ({index})"
    # The second of these is for a table that is locked as a whole: by default one waits for that for a day.
    lock_wait = """
        SET SESSION innodb_lock_wait_timeout = %(seconds)s, SESSION lock_wait_timeout = %(seconds)s
            /*M!, SESSION idle_transaction_timeout = 5 */
    """
    short_lock_wait = f"""
        SET @resourcepool_lock_wait = @@SESSION.innodb_lock_wait_timeout,
            @resourcepool_table_wait = @@SESSION.lock_wait_timeout,
            SESSION innodb_lock_wait_timeout = CAST(LEAST(@@SESSION.innodb_lock_wait_timeout, %(seconds)s) AS UNSIGNED),
            SESSION lock_wait_timeout = CAST(LEAST(@@SESSION.lock_wait_timeout, %(seconds)s) AS UNSIGNED),
            {_limit_idle("resourcepool_idle")}
    """
    usual_lock_wait = f"""
        SET SESSION innodb_lock_wait_timeout = @resourcepool_lock_wait,
            SESSION lock_wait_timeout = @resourcepool_table_wait,
            {_usual_idle("resourcepool_idle")}
    """
    timeouts = {"connect_timeout": 3, "read_timeout": 3, "write_timeout": 3}

    def claim_nowait(self, connection: BaseDatabaseWrapper, update: str, table: str, pk: str) -> str:
        if _is_mariadb(connection):
            return _AT_ONCE + update
        # Within a query of its own, because MySQL reads no table that it updates.
        return update.replace(f"{pk} = %s", f"{pk} = {_unlocked(table, pk, f'{pk} = %s')}", 1)

    def can_prepare(self, connection: BaseDatabaseWrapper) -> bool:
        return _is_mariadb(connection)

    def change_both(
        self, first: RowUpdate, second: RowUpdate, *, nowait: BaseDatabaseWrapper | None = None
    ) -> tuple[str, ...]:
        tables, both = f"{first.table}, {second.table}", f"{first.where} AND {second.where}"
        update = f"UPDATE {tables} SET {_assignments(first, second)} WHERE {both}"  # noqa: S608 (quoted names)
        if nowait is None:
            return (update,)
        if _is_mariadb(nowait):
            return (_AT_ONCE + update,)
        key = f"{second.table}.{second.pk}"
        return (f"{update} AND {key} = {_unlocked(second.table, key, second.where)}",)

    def change_row_and_first_ticket(
        self, row: RowUpdate, ticket: RowUpdate, first: str, tells: str
    ) -> str | None:
        # Within a query of its own, because MySQL reads no table that it updates.
        found = f"SELECT {ticket.pk}{first} LIMIT 1 FOR UPDATE SKIP LOCKED"
        query = f"SELECT {ticket.pk} FROM ({found}) first_in_line"  # noqa: S608
        return (
            f"UPDATE {row.table}, {ticket.table} SET {_assignments(row, ticket)} "  # noqa: S608
            f"WHERE {row.where} AND {ticket.table}.{ticket.pk} = ({query}) AND {ticket.where} "
            f"AND LAST_INSERT_ID({tells}) IS NOT NULL"
        )

    def first_ticket_value(self, cursor: Any) -> int | None:
        return int(cursor.lastrowid) if cursor.rowcount else None

    def refuses_text(self, error: Exception) -> bool:
        return bool(error.args) and error.args[0] in _NO_TEXT

    def violates(self, error: Exception, constraint: str) -> bool:
        code, said = (*error.args, None, None)[:2]
        return code == EXISTS and re.search(rf"[.']{constraint}'$", str(said)) is not None

    def before_warnings(self, connection: BaseDatabaseWrapper) -> str:
        # By default MariaDB keeps 64 of the warnings of a statement, and each key that exists is one.
        return "SET STATEMENT max_error_count = 65535 FOR " if _is_mariadb(connection) else ""

    def raise_on_altered_text(self, connection: BaseDatabaseWrapper) -> None:
        # INSERT IGNORE ignores more than existing keys: of text that a column cannot hold it stores "??".
        with connection.cursor() as cursor:
            cursor.execute("SHOW WARNINGS")
            for level, code, said in cursor.fetchall():
                if level != "Note" and code != EXISTS:
                    raise DataError(code, said)

    def reads_committed(self, connection: BaseDatabaseWrapper) -> bool:
        return getattr(connection, "isolation_level", None) == "read committed"

    def has_transaction(self, connection: BaseDatabaseWrapper) -> bool:
        # MySQL does not tell, but refuses to change a transaction that is under way; otherwise this changes nothing.
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION READ WRITE")
        except DatabaseError as error:
            if error.args[:1] != (IN_TRANSACTION,):
                raise
            return True
        return False

    def limit_idle(self, connection: BaseDatabaseWrapper) -> tuple[str, str, str] | None:
        return _IDLE

    def fence_after_update(self, cursor: Any) -> int | None:
        # LAST_INSERT_ID keeps its old value after a lost race: the row count has to be asked first.
        return int(cursor.lastrowid) if cursor.rowcount == 1 else None

    def error_kind(self, error: Exception) -> ErrorKind | None:
        code = error.args[0] if error.args else None
        if isinstance(error, InterfaceError) and code in (0, None):
            return ErrorKind.DISCONNECTED
        if code in _FOR_GOOD:
            return None
        listed = _CODES.get(code) if isinstance(code, int) else None
        return listed or unlisted(error)


def _unlocked(table: str, pk: str, where: str) -> str:
    """Return the query for the key of the row found by ``where``; NULL: another transaction has it locked."""
    found = f"SELECT {pk} FROM {table} WHERE {where} FOR UPDATE SKIP LOCKED"  # noqa: S608 (quoted names)
    return f"(SELECT * FROM ({found}) unlocked)"  # noqa: S608


def _assignments(*changes: RowUpdate) -> str:
    return ", ".join(change.assignments(f"{change.table}.") for change in changes)


def _is_mariadb(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "mysql_is_mariadb", False))
