"""Which sessions lock a row, and the error that says so."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError, connections, models

from resourcepool.db.inspection import Session, inspector
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked

AnyModel = type[models.Model]

MAX_ROWS = 1_000  # rows per query
MAX_NAMED = 3  # rows that an error names


@dataclass(frozen=True, slots=True)
class Locked:
    """A row that is locked now.

    Attributes:
        pool: "app.Model"; ``id``: its primary key.
        session: the session that locks it; None: unknown, or this database user may not see it.
    """

    pool: str
    id: Any
    session: Session | None

    def __str__(self) -> str:
        session, row = self.session, f"{self.pool} {self.id}"
        if session is None:
            return sentence_for("locked_by_unseen", row=row)
        who = {
            "session": session.number,
            "client": session.client or "the same host",
            "command": session.command,
        }
        if session.idle is None:
            return sentence_for("locked_by_busy", row=row, **who)
        return sentence_for("locked_by", row=row, count=round(session.idle), **who)


def lockers(using: str, model: AnyModel, pks: Collection[Any]) -> list[Locked]:
    """Return the rows, among the first ``MAX_ROWS``, that a session locks now.

    Empty on SQLite, which locks the whole database, and inside a transaction of the caller, which the query could
    disturb.
    """
    connection = connections[using]
    column, quote = model._meta.pk, connection.ops.quote_name
    assert column is not None  # noqa: S101 (for the type checker: every model has one)
    keys = {column.get_db_prep_value(pk, connection): pk for pk in list(pks)[:MAX_ROWS]}
    if not keys or connection.in_atomic_block or not connection.get_autocommit():
        return []
    try:
        table = quote(model._meta.db_table)
        sessions = inspector(connection).lockers(table, quote(str(column.column)), list(keys))
    except (DatabaseError, InterfaceError):  # no permission: the error says less
        return []
    label, pk_of = model._meta.label, {str(key): pk for key, pk in keys.items()}
    return [Locked(label, pk_of[str(key)], session) for key, session in sessions.items() if str(key) in pk_of]


def describe_lockers(using: str, model: AnyModel, pks: Collection[Any]) -> str:
    """Return which sessions lock the first few of these rows; "": none, or unknown."""
    return "; ".join(map(str, lockers(using, model, pks)[:MAX_NAMED]))


def row_locked(using: str, lockers: str = "", *, count: int = 1, done: int = 0) -> RowLocked:
    """Return the error for locked rows.

    Args:
        lockers: the sessions that lock them; "": unknown.
        count: the number of locked rows.
        done: the number of other rows that were changed.
    """
    alias = repr(using)
    error = sentence_for("rows_locked", alias=alias, count=count, count_done=done)
    if count == 1 and not done:
        error = sentence_for("row_locked", alias=alias)
    return RowLocked(sentence_for("about", name=error, why=lockers) if lockers else error, done)
