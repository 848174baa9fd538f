"""MariaDB and MySQL."""

import re
from typing import Any

from django.db import DataError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect.base import Dialect, ErrorKind, RowUpdate, unlisted

_DISCONNECTED = (
    *(1040, 1053, 1077, 1079, 1158, 1159, 1160, 1161, 1203, 1226, 1290, 1836, 1927),  # of the server
    *(3032, 3168, 3169),  # of MySQL: offline, not ready, session killed
    3100,  # of MySQL's group replication: this member left the group during a commit
    *(2002, 2003, 2005, 2006, 2013, 2055, 4031),  # of the driver
    2014,  # out of sync: a signal interrupted the thread before it read the reply
)
_CODES = {
    # 3101, of MySQL's group replication: another member changed the row first.
    **dict.fromkeys((1213, 1020, 3101), ErrorKind.CONFLICT),
    **dict.fromkeys((1205, 1317, 1969, 3024, 3572), ErrorKind.BUSY),
    **dict.fromkeys(_DISCONNECTED, ErrorKind.DISCONNECTED),
    **dict.fromkeys((1054, 1146), ErrorKind.NOT_MIGRATED),
    # No access to the database, wrong user or password, no such database, wrong plugin, expired or locked.
    **dict.fromkeys((1044, 1045, 1049, 1698, 1820, 1862, 3118, 4151), ErrorKind.LOGIN),
}
_NO_TEXT = (1267, 1300, 1366, 3988)  # text that the column or the connection cannot represent
EXISTS = 1062
_FOR_GOOD = (
    *_NO_TEXT,
    *(2059, 2061, 3159),  # a login method that the driver does not support, or that needs encryption
)

IN_TRANSACTION = 1568  # ER_CANT_CHANGE_TX_CHARACTERISTICS

_NOWAIT = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR "  # MariaDB only; MySQL's minimum is a second


class MySQL(Dialect):
    """MariaDB and MySQL. They lack UPDATE .. RETURNING, so the fence is returned as the last insert id."""

    now = indexed_now = "UTC_TIMESTAMP(6)"
    later = "UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND"
    next_fence = "LAST_INSERT_ID({fence} + 1)"
    returning = ""
    binary_param = "BINARY %s"
    micros_now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
    micros_until = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), {moment})"
    null_in_order = "NULL"  # the column itself would make the server sort
    # Row values use no index.
    not_before = "({first} > {first_value} OR {first} = {first_value} AND {second} >= {second_value})"
    by_index = " FORCE INDEX ({index})"
    # lock_wait_timeout is for a locked table; its default is a day.
    lock_wait = """
        SET SESSION innodb_lock_wait_timeout = %(seconds)s, SESSION lock_wait_timeout = %(seconds)s
            /*M!, SESSION idle_transaction_timeout = 5 */
    """
    # Only MariaDB executes /*M! .. */; it has a limit for transactions alone, which overrides wait_timeout.
    # CAST, because MySQL's LEAST of a variable and a number is a decimal, which cannot be assigned.
    short_lock_wait = """
        SET @resourcepool_lock_wait = @@SESSION.innodb_lock_wait_timeout,
            @resourcepool_table_wait = @@SESSION.lock_wait_timeout,
            SESSION innodb_lock_wait_timeout = CAST(LEAST(@@SESSION.innodb_lock_wait_timeout, %(seconds)s) AS UNSIGNED),
            SESSION lock_wait_timeout = CAST(LEAST(@@SESSION.lock_wait_timeout, %(seconds)s) AS UNSIGNED),
            @resourcepool_idle = @@SESSION.wait_timeout, SESSION wait_timeout = %(idle)s
            /*M!, @resourcepool_idle_transaction = @@SESSION.idle_transaction_timeout,
            SESSION idle_transaction_timeout = %(idle)s */
    """
    usual_lock_wait = """
        SET SESSION innodb_lock_wait_timeout = @resourcepool_lock_wait,
            SESSION lock_wait_timeout = @resourcepool_table_wait, SESSION wait_timeout = @resourcepool_idle
            /*M!, SESSION idle_transaction_timeout = @resourcepool_idle_transaction */
    """
    timeouts = {"connect_timeout": 3, "read_timeout": 3, "write_timeout": 3}

    def claim_nowait(self, connection: BaseDatabaseWrapper, update: str, table: str, pk: str) -> str:
        if _is_mariadb(connection):
            return _NOWAIT + update
        # In a derived table, because MySQL cannot read a table that it updates.
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
            return (_NOWAIT + update,)
        key = f"{second.table}.{second.pk}"
        return (f"{update} AND {key} = {_unlocked(second.table, key, second.where)}",)

    def change_row_and_first_ticket(self, row: RowUpdate, ticket: RowUpdate, first: str) -> str | None:
        # In a derived table, because MySQL cannot read a table that it updates.
        unlocked = f"SELECT {ticket.pk}{first} LIMIT 1 FOR UPDATE SKIP LOCKED"
        chosen = f"SELECT {ticket.pk} FROM ({unlocked}) first_in_line"  # noqa: S608 (quoted names)
        return (
            f"UPDATE {row.table}, {ticket.table} SET {_assignments(row, ticket)} "  # noqa: S608
            f"WHERE {row.where} AND {ticket.table}.{ticket.pk} = ({chosen}) "
            # Not IS NOT NULL, which MySQL takes for true of a key, without the function.
            f"AND LAST_INSERT_ID({ticket.table}.{ticket.pk}) > 0"
        )

    def changed_ticket(self, cursor: Any) -> int | None:
        return int(cursor.lastrowid) if cursor.rowcount else None

    def refuses_text(self, error: Exception) -> bool:
        return bool(error.args) and error.args[0] in _NO_TEXT

    def violates(self, error: Exception, constraint: str) -> bool:
        code, message = (*error.args, None, None)[:2]
        return code == EXISTS and re.search(rf"[.']{constraint}'$", str(message)) is not None

    def before_warnings(self, connection: BaseDatabaseWrapper) -> str:
        # By default MariaDB keeps 64 warnings per statement, and each existing key is one.
        return "SET STATEMENT max_error_count = 65535 FOR " if _is_mariadb(connection) else ""

    def raise_on_altered_text(self, connection: BaseDatabaseWrapper) -> None:
        # INSERT IGNORE ignores more than existing keys: it stores "??" for text that a column cannot represent.
        with connection.cursor() as cursor:
            cursor.execute("SHOW WARNINGS")
            for level, code, message in cursor.fetchall():
                if level != "Note" and code != EXISTS:
                    raise DataError(code, message)

    def reads_committed(self, connection: BaseDatabaseWrapper) -> bool:
        return getattr(connection, "isolation_level", None) == "read committed"

    def fence_after_update(self, cursor: Any) -> int | None:
        # LAST_INSERT_ID keeps its old value if no row matched, so the row count comes first.
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
    """Return a subquery for the key of the row that matches ``where``; NULL: another transaction locks it."""
    query = f"SELECT {pk} FROM {table} WHERE {where} FOR UPDATE SKIP LOCKED"  # noqa: S608 (quoted names)
    return f"(SELECT * FROM ({query}) unlocked)"  # noqa: S608


def _assignments(*changes: RowUpdate) -> str:
    return ", ".join(change.assignments(f"{change.table}.") for change in changes)


def _is_mariadb(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "mysql_is_mariadb", False))
