"""The interface to the differences between databases."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from django.db import InterfaceError, InternalError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper


class ErrorKind(Enum):
    """What a failed statement means for its caller."""

    CONFLICT = "conflict"  # rolled back, or the whole database is locked: send it again
    BUSY = "busy"  # the row is locked: send it again, or do without
    DISCONNECTED = "disconnected"  # it may have taken effect: reconnect and check
    NOT_MIGRATED = "not migrated"  # a table or a column does not exist
    LOGIN = "login"  # a wrong user, password or database name: misconfigured, or just being changed
    REFUSED = "refused"  # perhaps temporary: a full disk, a missing permission, an unlisted error


@dataclass(frozen=True, slots=True)
class RowUpdate:
    """A change of one row of ``table``: SQL with named parameters."""

    table: str
    pk: str
    changes: Sequence[tuple[str, str]]  # (column, its new value)
    where: str  # with qualified column names

    @property
    def update(self) -> str:
        """The statement for this change alone."""
        return f"UPDATE {self.table} SET {self.assignments()} WHERE {self.where}"  # noqa: S608 (quoted names)

    def assignments(self, prefix: str = "") -> str:
        """Return the assignments of SET."""
        return ", ".join(f"{prefix}{column} = {value}" for column, value in self.changes)


class Dialect:
    """The differences between databases; one subclass for each."""

    now = ""  # if possible, the time when the row is evaluated: a lease may expire while the statement waits for a lock
    clock_step = 0.000_001  # resolution of the clock in seconds
    later = ""  # now plus %s microseconds
    indexed_now = ""  # the start of the statement, in a form that can use an index
    greatest = "GREATEST"
    true, false = "1", "0"
    next_fence = "{fence} + 1"
    returning = " RETURNING {fence}"
    binary_param = "%s"  # a text parameter compared byte by byte
    returning_key = ""  # suffix of an INSERT that returns the new row's key
    micros_now = ""  # microseconds from 1970 until now
    fresh_number = "{micros_now}"  # the same, but different for every statement
    micros_until = ""  # microseconds from now until the column {moment}
    null_in_order = "{column}"  # in ORDER BY, a column that is NULL in all selected rows
    # Two indexed columns are not less than two numbers, in a form that uses the index.
    not_before = "({first}, {second}) >= ({first_value}, {second_value})"
    by_index = ""  # index hint after a table: use {index}, where the planner may prefer to sort
    lock_wait = ""  # sets how long this session waits for a row or a table, in whole seconds
    lock_options: dict[str, Any] = {}  # the same, if it is an option of the connection
    # Sets the same, and the session's idle limit, until the end of the transaction or until ``usual_lock_wait``.
    short_lock_wait = ""
    usual_lock_wait = ""
    read_committed = ""  # lets the transaction that has begun read what others commit meanwhile
    exists_is_slow = True  # an EXISTS subquery is worth avoiding
    timeouts: dict[str, Any] = {}  # connection options against hanging on a dead network

    @property
    def indexed_later(self) -> str:
        """``later`` based on ``indexed_now``."""
        return self.later.replace(self.now, self.indexed_now)

    def can_prepare(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether preparing frequent statements pays off (``prepared``)."""
        return False

    def claim_nowait(self, connection: BaseDatabaseWrapper, update: str, table: str, pk: str) -> str:
        """Return ``update`` (WHERE {pk} = %s ..) changed to fail, or match no row, if the row is locked."""
        return update

    def change_both(
        self, first: "RowUpdate", second: "RowUpdate", *, nowait: BaseDatabaseWrapper | None = None
    ) -> tuple[str, ...]:
        """Return the statements of one transaction that make both changes; each must report a changed row.

        Args:
            nowait: the connection, if they are to fail, or change nothing, when the second row is locked. MySQL still
                waits for the first row.
        """
        return (first.update, second.update)

    def change_row_and_first_ticket(self, row: "RowUpdate", ticket: "RowUpdate", first: str) -> str | None:
        """Return one statement that changes both the row and the first unlocked one of the tickets, or neither.

        Args:
            first: " FROM .. WHERE .. ORDER BY .." of the tickets, by key.

        Returns:
            None: this database has no such statement.
        """
        return None

    def change_row_and_first_in_line(
        self, row: "RowUpdate", ticket: "RowUpdate", line: str, first: str, more: str
    ) -> str | None:
        """Return the statement of ``change_row_and_first_ticket`` that reads the tickets, too; None: not here.

        Args:
            line: a SELECT, to which ``first`` refers as "line".
            more: a column of the ticket. The statement returns its key, this, and how many rows ``line`` has.
        """
        return None

    def changed_ticket(self, cursor: Any) -> int | None:
        """Return the key of the ticket that ``change_row_and_first_ticket`` changed; None if it changed nothing."""
        raise NotImplementedError

    def insert_rows(
        self, table: str, names: Sequence[str], rows: Sequence[Sequence[str | int | None]], at: str
    ) -> tuple[str, list[str]]:
        """Return the statement, and its parameters, that inserts these rows, each with the current time.

        Args:
            table, names, at: quoted; ``names``: the columns of ``rows``; ``at``: the column for the time.
        """
        # Whole numbers as literals, because drivers are slow with placeholders.
        values = ", ".join(f"({', '.join(map(_literal, row))}, {self.indexed_now})" for row in rows)
        texts = [value for row in rows for value in row if isinstance(value, str)]
        return f"INSERT INTO {table} ({', '.join(names)}, {at}) VALUES {values}", texts  # noqa: S608 (quoted, numbers)

    def fence_after_update(self, cursor: Any) -> int | None:
        """Return the fence granted by the claim just executed on ``cursor``, or None if it matched no row."""
        row = cursor.fetchone()
        return None if row is None else int(row[0])

    def error_kind(self, error: Exception) -> ErrorKind | None:
        """Return the kind of this driver's ``error``; None: retrying cannot help."""
        raise NotImplementedError

    def refuses_text(self, error: Exception) -> bool:
        """Whether the driver's ``error`` says that a character cannot be stored or sent."""
        return False

    def violates(self, error: Exception, constraint: str) -> bool:
        """Whether ``error`` is a violation of this unique constraint."""
        return False

    def before_warnings(self, connection: BaseDatabaseWrapper) -> str:
        """Return the prefix of an INSERT that ``raise_on_altered_text`` checks."""
        return ""

    def raise_on_altered_text(self, connection: BaseDatabaseWrapper) -> None:
        """Raise DataError if an INSERT that ignores existing keys has altered a text."""

    def reads_committed(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether a query inside an open transaction sees later commits of others."""
        return True  # on SQLite a transaction that has read cannot write after another's commit

    def key_after_insert(self, cursor: Any) -> int:
        """Return the primary key of the row just inserted."""
        return int(cursor.lastrowid)


def unlisted(error: Exception) -> ErrorKind | None:
    """Return the kind of an error by its class alone."""
    return ErrorKind.REFUSED if isinstance(error, OperationalError | InternalError | InterfaceError) else None


def _literal(value: str | int | None) -> str:
    if value is None:
        return "NULL"
    return "%s" if isinstance(value, str) else f"{value:d}"


def micros(seconds: float) -> int:
    """Return ``seconds`` as whole microseconds."""
    return round(seconds * 1_000_000)
