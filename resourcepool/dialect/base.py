"""What every database answers in its own way: the names of the differences, and what they mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from django.db import InterfaceError, InternalError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper


class ErrorKind(Enum):
    """What a failed statement means for its sender."""

    CONFLICT = "conflict"  # rolled back, or the whole database is locked: send it again
    BUSY = "busy"  # the row is locked: send it again, or do without
    DISCONNECTED = "disconnected"  # it may have taken effect: reconnect and look
    NOT_MIGRATED = "not migrated"  # a table or a column is not there
    LOGIN = "login"  # a wrong user, password or database name: misconfigured, or being changed at this moment
    REFUSED = "refused"  # it may pass: a full disk, a missing permission, whatever is on no list


@dataclass(frozen=True, slots=True)
class RowUpdate:
    """A change of one row of ``table``: SQL with named parameters."""

    table: str
    pk: str
    changes: Sequence[tuple[str, str]]  # (column, its new value)
    where: str  # columns with the name of their table

    @property
    def update(self) -> str:
        """The statement that makes this change alone."""
        return f"UPDATE {self.table} SET {self.assignments()} WHERE {self.where}"  # noqa: S608 (quoted names)

    def assignments(self, prefix: str = "") -> str:
        """Return what follows SET."""
        return ", ".join(f"{prefix}{column} = {value}" for column, value in self.changes)


class Dialect:
    """What differs between databases; one subclass each."""

    now = ""  # where the database can, as a row is evaluated: a lease may have expired while one waited for its lock
    clock_step = 0.000_001  # seconds between two readings that differ
    later = ""  # now plus %s microseconds
    indexed_now = ""  # as the statement began, in the form that lets an index on a moment be used
    greatest = "GREATEST"
    true, false = "1", "0"
    next_fence = "{fence} + 1"
    returning = " RETURNING {fence}"
    binary_param = "%s"  # a text parameter that is compared byte by byte
    returning_key = ""  # an INSERT ends with this to tell the new row's key
    micros_now = ""  # microseconds from 1970 until now
    fresh_number = "{micros_now}"  # the same as a number that no statement has read before
    micros_until = ""  # microseconds from now until the column {moment}
    null_in_order = "{column}"  # in ORDER BY, for a column that is NULL in all rows that are found
    # That two columns, by which an index is ordered, are not before two numbers: in the form for which it is used.
    not_before = "({first}, {second}) >= ({one}, {other})"
    by_index = ""  # after a table: {index} is to be used, for the planner may prefer to sort
    lock_wait = ""  # sets how long this session waits for a row or a table, in whole seconds
    lock_options: dict[str, Any] = {}  # the same, where it is an option of the connection
    # Sets the same, and how long the session may idle, until the end of the transaction, or until ``usual_lock_wait``.
    short_lock_wait = ""
    usual_lock_wait = ""
    exists_is_slow = True  # a condition that looks into another table takes time that is worth saving
    timeouts: dict[str, Any] = {}  # options that keep a dead network from hanging a connection

    @property
    def indexed_later(self) -> str:
        """``later``, in the form of ``indexed_now``."""
        return self.later.replace(self.now, self.indexed_now)

    def can_prepare(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether statements that a session sends often are worth preparing (``prepared``)."""
        return False

    def claim_nowait(self, connection: BaseDatabaseWrapper, update: str, table: str, pk: str) -> str:
        """Return ``update`` (WHERE the key {pk} = %s ..) so that it fails or finds nothing if the row is locked."""
        return update

    def change_both(
        self, first: "RowUpdate", second: "RowUpdate", *, nowait: BaseDatabaseWrapper | None = None
    ) -> tuple[str, ...]:
        """Return the statements, of one transaction, that make these two changes; each must report a changed row.

        Args:
            at_once: of this connection; they fail or change nothing if the second row is locked. MySQL waits for
                the first one.
        """
        return (first.update, second.update)

    def change_row_and_first_ticket(
        self, row: "RowUpdate", ticket: "RowUpdate", first: str, tells: str
    ) -> str | None:
        """Return one statement that makes these two changes, or neither, to the row and to the first ticket in line.

        None: this database has no such statement.

        Args:
            first: " FROM .. WHERE .. ORDER BY ..", which finds the tickets in line.
            tells: a whole number made of the ticket's columns; see ``first_ticket_value``.
        """
        return None

    def first_ticket_value(self, cursor: Any) -> int | None:
        """Return what ``change_row_and_first_ticket`` tells of the ticket, or None if it changed nothing."""
        raise NotImplementedError

    def insert_rows(
        self, table: str, names: Sequence[str], rows: Sequence[Sequence[str | int | None]], at: str
    ) -> tuple[str, list[str]]:
        """Return the statement, and its parameters, that adds all these rows, each with the moment of now.

        Args:
            table, names, at: quoted; ``names`` of the columns of ``rows``, ``at`` of the one for the moment.
        """
        # Whole numbers are written out: drivers take their time for every placeholder.
        values = ", ".join(f"({', '.join(map(_written, row))}, {self.indexed_now})" for row in rows)
        texts = [value for row in rows for value in row if isinstance(value, str)]
        return f"INSERT INTO {table} ({', '.join(names)}, {at}) VALUES {values}", texts  # noqa: S608 (quoted, numbers)

    def fence_after_update(self, cursor: Any) -> int | None:
        """Return the fence that the claim just executed on ``cursor`` was granted, or None if it lost."""
        row = cursor.fetchone()
        return None if row is None else int(row[0])

    def error_kind(self, error: Exception) -> ErrorKind | None:
        """Return what ``error``, raised by the driver of this database, means; None when retrying cannot help."""
        raise NotImplementedError

    def refuses_text(self, error: Exception) -> bool:
        """Whether ``error`` of the driver says that a character cannot be stored, or sent."""
        return False

    def violates(self, error: Exception, constraint: str) -> bool:
        """Whether ``error`` says that an insertion would break this unique constraint."""
        return False

    def before_warnings(self, connection: BaseDatabaseWrapper) -> str:
        """Return what goes before an insertion that ``raise_on_altered_text`` looks at."""
        return ""

    def raise_on_altered_text(self, connection: BaseDatabaseWrapper) -> None:
        """Raise DataError if an insertion that ignores existing keys has stored something else than it was given."""

    def reads_committed(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether a look inside an open transaction sees what others have committed since that began."""
        return True  # on SQLite a transaction that has read cannot write after another one's commit

    def has_transaction(self, connection: BaseDatabaseWrapper) -> bool:
        """Return whether this session has an open transaction: Django does not know of one that was begun by SQL."""
        raise NotImplementedError

    def limit_idle(self, connection: BaseDatabaseWrapper) -> tuple[str, str, str] | None:
        """Return the statements by which the server ends an open transaction whose client is silent, if there are any.

        The first one takes the whole seconds, and remembers what holds otherwise; the second one takes others in the
        same transaction; the third one sets what held again after it ("": it ends by itself).
        """
        return None

    def key_after_insert(self, cursor: Any) -> int:
        """Return the primary key of the row just inserted on ``cursor``."""
        return int(cursor.lastrowid)


def unlisted(error: Exception) -> ErrorKind | None:
    """Return what an error means of which no list knows more than its class."""
    return ErrorKind.REFUSED if isinstance(error, OperationalError | InternalError | InterfaceError) else None


def _written(value: str | int | None) -> str:
    if value is None:
        return "NULL"
    return "%s" if isinstance(value, str) else f"{value:d}"


def micros(seconds: float) -> int:
    """Return ``seconds`` as whole microseconds."""
    return round(seconds * 1_000_000)
