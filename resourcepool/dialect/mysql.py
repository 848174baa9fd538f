"""MariaDB and MySQL."""

from typing import Any

from django.db import InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.base import Dialect, RowUpdate, Trouble, unlisted

_DISCONNECTED = (
    *(1040, 1053, 1077, 1079, 1158, 1159, 1160, 1161, 1203, 1226, 1290, 1836, 1927),  # the server's
    *(2002, 2003, 2005, 2006, 2013, 2055, 4031),  # the driver's
    2014,  # out of step: a signal interrupted the thread that was to read the reply
)
_CODES = {
    **dict.fromkeys((1213, 1020), Trouble.CONFLICT),
    **dict.fromkeys((1205, 1317, 1969, 3024, 3572), Trouble.BUSY),
    **dict.fromkeys(_DISCONNECTED, Trouble.DISCONNECTED),
    **dict.fromkeys((1054, 1146), Trouble.NOT_MIGRATED),
    # No access to the database, wrong user or password, no such database, wrong plugin, expired or locked.
    **dict.fromkeys((1044, 1045, 1049, 1698, 1820, 1862, 3118, 4151), Trouble.LOGIN),
}
_FOR_GOOD = (1267, 1300, 1366, 3988)  # text that a column, or the connection, cannot hold

# Zero means no limit. The one for transactions that have written goes before the others, also if it is longer.
_LIMIT_IDLE = """
    SESSION idle_write_transaction_timeout = LEAST(%s, @@SESSION.wait_timeout,
        IF(@@SESSION.idle_transaction_timeout, @@SESSION.idle_transaction_timeout, 31536000),
        IF(@@SESSION.idle_write_transaction_timeout, @@SESSION.idle_write_transaction_timeout, 31536000))
"""
_IDLE = (
    f"SET @resourcepool_idle_write = @@SESSION.idle_write_transaction_timeout, {_LIMIT_IDLE}",
    f"SET {_LIMIT_IDLE}",
    "SET SESSION idle_write_transaction_timeout = @resourcepool_idle_write",
)


class MySQL(Dialect):
    """MariaDB and MySQL. Neither has UPDATE .. RETURNING, so the fence travels as the last insert id."""

    now = indexed_now = "UTC_TIMESTAMP(6)"
    later = "UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND"
    next_fence = "LAST_INSERT_ID({fence} + 1)"
    returning = ""
    exactly = "BINARY %s"
    micros_now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
    micros_until = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), {moment})"
    null_in_order = "NULL"  # named itself, the column has the rows sorted
    # For row values no index is used.
    not_before = "({first} > {one} OR {first} = {one} AND {second} >= {other})"
    by_index = " FORCE INDEX ({index})"
    # The second of these is for a table that is locked as a whole: by default one waits for that for a day.
    # What is in /*M! .. */ only MariaDB reads.
    lock_wait = """
        SET SESSION innodb_lock_wait_timeout = %(seconds)s, SESSION lock_wait_timeout = %(seconds)s
            /*M!, SESSION idle_transaction_timeout = 5 */
    """
    brief_lock_wait = """
        SET @resourcepool_lock_wait = @@SESSION.innodb_lock_wait_timeout,
            @resourcepool_table_wait = @@SESSION.lock_wait_timeout,
            SESSION innodb_lock_wait_timeout = LEAST(@@SESSION.innodb_lock_wait_timeout, %(seconds)s),
            SESSION lock_wait_timeout = LEAST(@@SESSION.lock_wait_timeout, %(seconds)s)
            /*M!, @resourcepool_idle = @@SESSION.idle_transaction_timeout,
            SESSION idle_transaction_timeout = COALESCE(%(idle)s, @@SESSION.idle_transaction_timeout) */
    """
    usual_lock_wait = """
        SET SESSION innodb_lock_wait_timeout = @resourcepool_lock_wait,
            SESSION lock_wait_timeout = @resourcepool_table_wait
            /*M!, SESSION idle_transaction_timeout = @resourcepool_idle */
    """
    timeouts = {"connect_timeout": 3, "read_timeout": 3, "write_timeout": 3}

    def claim_at_once(self, connection: BaseDatabaseWrapper, update: str, table: str, pk: str) -> str:
        # MySQL has no such thing; there innodb_lock_wait_timeout of the session decides (docs/databases.md).
        return f"SET STATEMENT innodb_lock_wait_timeout = 0 FOR {update}" if _is_mariadb(connection) else update

    def can_prepare(self, connection: BaseDatabaseWrapper) -> bool:
        return _is_mariadb(connection)

    def change_both(
        self, first: RowUpdate, second: RowUpdate, *, at_once: BaseDatabaseWrapper | None = None
    ) -> tuple[str, ...]:
        tables, both = f"{first.table}, {second.table}", f"{first.where} AND {second.where}"
        update = f"UPDATE {tables} SET {_assignments(first, second)} WHERE {both}"  # noqa: S608 (quoted names)
        return (self.claim_at_once(at_once, update, "", "") if at_once else update,)

    def change_both_by_first(self, row: RowUpdate, ticket: RowUpdate, first: str, tells: str) -> str | None:
        # Within a query of its own, because MySQL reads no table that it updates.
        found = f"SELECT {ticket.pk}{first} LIMIT 1 FOR UPDATE SKIP LOCKED"
        query = f"SELECT {ticket.pk} FROM ({found}) first_in_line"  # noqa: S608
        return (
            f"UPDATE {row.table}, {ticket.table} SET {_assignments(row, ticket)} "  # noqa: S608
            f"WHERE {row.where} AND {ticket.table}.{ticket.pk} = ({query}) AND {ticket.where} "
            f"AND LAST_INSERT_ID({tells}) IS NOT NULL"
        )

    def told_by_change(self, cursor: Any) -> int | None:
        return int(cursor.lastrowid) if cursor.rowcount else None

    def reads_committed(self, connection: BaseDatabaseWrapper) -> bool:
        return getattr(connection, "isolation_level", None) == "read committed"

    def limit_idle(self, connection: BaseDatabaseWrapper) -> tuple[str, str, str] | None:
        return _IDLE if _is_mariadb(connection) else None

    def fence_after_update(self, cursor: Any) -> int | None:
        # LAST_INSERT_ID keeps its old value after a lost race: the row count has to be asked first.
        return int(cursor.lastrowid) if cursor.rowcount == 1 else None

    def trouble(self, error: Exception) -> Trouble | None:
        code = error.args[0] if error.args else None
        if isinstance(error, InterfaceError) and code in (0, None):
            return Trouble.DISCONNECTED
        if code in _FOR_GOOD:
            return None
        listed = _CODES.get(code) if isinstance(code, int) else None
        return listed or unlisted(error)


def _assignments(*changes: RowUpdate) -> str:
    return ", ".join(change.assignments(f"{change.table}.") for change in changes)


def _is_mariadb(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "mysql_is_mariadb", False))
