"""PostgreSQL."""

import json
from collections.abc import Sequence
from typing import Any

from django.db import InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect.base import Dialect, ErrorKind, RowUpdate, unlisted

_STATES = {
    **dict.fromkeys(("40001", "40P01"), ErrorKind.CONFLICT),
    **dict.fromkeys(("55P03", "57014"), ErrorKind.BUSY),
    **dict.fromkeys(("53300", "57P01", "57P02", "57P03", "57P05", "25006", "25P03"), ErrorKind.DISCONNECTED),
    **dict.fromkeys(("42P01", "42703"), ErrorKind.NOT_MIGRATED),
    "42501": ErrorKind.REFUSED,
    **dict.fromkeys(("28000", "28P01", "3D000"), ErrorKind.LOGIN),
}
_NO_TEXT = ("22021", "22P05")  # text that the database or the connection cannot represent

IDLE, UNKNOWN = 0, 4  # libpq's PQTRANS_IDLE and PQTRANS_UNKNOWN: the session is lost

_LOGIN = (
    "authentication failed",
    "does not exist",
    "not permitted to log in",
    "permission denied for database",
    "no pg_hba.conf entry",
)


class PostgreSQL(Dialect):
    """PostgreSQL. ``now()`` is not used, because it is the start of the transaction."""

    now = "CLOCK_TIMESTAMP()"
    true, false = "TRUE", "FALSE"
    indexed_now = "STATEMENT_TIMESTAMP()"
    later = "CLOCK_TIMESTAMP() + %s * INTERVAL '1 microsecond'"
    returning_key = " RETURNING {pk}"
    micros_now = "CAST(EXTRACT(EPOCH FROM STATEMENT_TIMESTAMP()) * 1000000 AS bigint)"
    micros_until = "CAST(EXTRACT(EPOCH FROM ({moment} - STATEMENT_TIMESTAMP())) * 1000000 AS bigint)"
    lock_wait = """
        SELECT SET_CONFIG('lock_timeout', %(seconds)s * 1000 || 'ms', false),
               SET_CONFIG('statement_timeout', '5s', false),
               SET_CONFIG('idle_in_transaction_session_timeout', '5s', false)
    """
    short_lock_wait = """
        SELECT SET_CONFIG('lock_timeout', %(seconds)s * 1000 || 'ms', true),
               SET_CONFIG('idle_in_transaction_session_timeout', %(idle)s * 1000 || 'ms', true)
    """
    read_committed = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
    timeouts = {
        "connect_timeout": 3,
        "tcp_user_timeout": 3_000,
        "keepalives_idle": 3,
        "keepalives_interval": 1,
        "keepalives_count": 3,
    }

    def claim_nowait(self, connection: BaseDatabaseWrapper, update: str, table: str, pk: str) -> str:
        unlocked = f"(SELECT {pk} FROM {table} WHERE {pk} = %s FOR UPDATE SKIP LOCKED)"  # noqa: S608 (quoted names)
        return update.replace(f"{pk} = %s", f"{pk} = {unlocked}", 1)

    def change_both(
        self, first: RowUpdate, second: RowUpdate, *, nowait: BaseDatabaseWrapper | None = None
    ) -> tuple[str, ...]:
        # Locked first, because otherwise the other row could change alone.
        lock = "FOR UPDATE SKIP LOCKED" if nowait else "FOR UPDATE"
        text = (
            f"WITH second AS (SELECT 1 FROM {second.table} WHERE {second.where} {lock}), "  # noqa: S608 (quoted)
            f"first AS ({first.update} AND EXISTS (SELECT 1 FROM second) RETURNING 1) "
            f"{second.update} AND EXISTS (SELECT 1 FROM first)"
        )
        return (text,)

    def change_row_and_first_in_line(
        self, row: RowUpdate, ticket: RowUpdate, line: str, first: str, more: str
    ) -> str | None:
        # A locking read locks no more than the row that it returns.
        change = self.change_row_and_first_ticket(row, ticket, first)
        assert change is not None  # noqa: S101 (for the type checker)
        rest = change.removeprefix("WITH ")
        return f"WITH line AS ({line}), {rest}, {more}, (SELECT COUNT(*) FROM line)"  # noqa: S608 (quoted names)

    def change_row_and_first_ticket(self, row: RowUpdate, ticket: RowUpdate, first: str) -> str | None:
        # The row is locked first: a ticket that was locked while this waits for the row would block its whole process.
        first = first.replace(" WHERE ", " WHERE EXISTS (SELECT 1 FROM held) AND ", 1)
        return (
            f"WITH held AS (SELECT 1 FROM {row.table} WHERE {row.where} FOR UPDATE), "  # noqa: S608 (quoted names)
            f"chosen AS (SELECT *{first} LIMIT 1 FOR UPDATE SKIP LOCKED), "
            f"given AS (UPDATE {row.table} SET {row.assignments()} FROM chosen AS {ticket.table} "
            f"WHERE {row.where} RETURNING {ticket.table}.{ticket.pk} AS pk) "
            f"UPDATE {ticket.table} SET {ticket.assignments()} FROM given "
            f"WHERE {ticket.table}.{ticket.pk} = given.pk RETURNING given.pk"
        )

    def changed_ticket(self, cursor: Any) -> int | None:
        row = cursor.fetchone()
        return None if row is None else int(row[0])

    def insert_rows(
        self, table: str, names: Sequence[str], rows: Sequence[Sequence[str | int | None]], at: str
    ) -> tuple[str, list[str]]:
        # A single parameter: psycopg is slow with tens of thousands of them.
        keys, columns = [name.strip('"') for name in names], ", ".join(names)
        values = json.dumps([dict(zip(keys, row, strict=True)) for row in rows], ensure_ascii=False)
        read = f"SELECT {columns}, {self.indexed_now} FROM JSON_POPULATE_RECORDSET(NULL::{table}, CAST(%s AS json))"  # noqa: S608 (quoted)
        return f"INSERT INTO {table} ({columns}, {at}) {read}", [values]

    def reads_committed(self, connection: BaseDatabaseWrapper) -> bool:
        chosen = getattr(connection, "isolation_level", None)
        return getattr(chosen, "name", "READ_COMMITTED") == "READ_COMMITTED"

    def violates(self, error: Exception, constraint: str) -> bool:
        details = getattr(error.__cause__, "diag", None)
        return _state(error) == "23505" and getattr(details, "constraint_name", None) == constraint

    def refuses_text(self, error: Exception) -> bool:
        return _state(error) in _NO_TEXT

    def error_kind(self, error: Exception) -> ErrorKind | None:
        state = _state(error)
        if state:
            return ErrorKind.DISCONNECTED if state.startswith("08") else _STATES.get(state) or unlisted(error)
        message = str(error)
        # A refused login has no SQLSTATE.
        if any(words in message for words in _LOGIN):
            return ErrorKind.LOGIN
        lost = isinstance(error, InterfaceError) or type(error).__name__ == "OperationalError"
        return ErrorKind.DISCONNECTED if lost else unlisted(error)

    def key_after_insert(self, cursor: Any) -> int:
        return int(cursor.fetchone()[0])


def _state(error: Exception) -> str:
    cause = error.__cause__
    return getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""
