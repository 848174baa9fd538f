"""Sessions that have a row locked: mostly holders inside ``guard``, which may have vanished with their host."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError, connections, models

from resourcepool.dialect.inspection import Session, inspector
from resourcepool.events import sentence_for

AnyModel = type[models.Model]

MAX_ROWS = 1_000  # rows per query
TOLD = 3  # rows that an error names


@dataclass(frozen=True, slots=True)
class Locked:
    """A row that is locked at this moment.

    Attributes:
        pool: "app.Model"; ``id``: its primary key.
        session: the session that has it locked; None: this database user may not see it.
    """

    pool: str
    id: Any
    session: Session | None

    def __str__(self) -> str:
        one, row = self.session, f"{self.pool} {self.id}"
        if one is None:
            return sentence_for("locked_by_unseen", row=row)
        who = {"session": one.number, "client": one.client or "the same host", "command": one.command}
        if one.idle is None:
            return sentence_for("locked_by_busy", row=row, **who)
        return sentence_for("locked_by", row=row, count=round(one.idle), **who)


def lockers(using: str, model: AnyModel, pks: Collection[Any]) -> list[Locked]:
    """Return the rows, of the first ``MAX_ROWS``, that a session has locked at this moment.

    Empty on SQLite, where the whole database is locked, and inside a transaction of the caller, which the query could
    disturb.
    """
    connection = connections[using]
    column, quote = model._meta.pk, connection.ops.quote_name
    assert column is not None  # noqa: S101 (for the type checker: every model has one)
    keys = {column.get_db_prep_value(pk, connection): pk for pk in list(pks)[:MAX_ROWS]}
    if not keys or connection.in_atomic_block:
        return []
    try:
        table = quote(model._meta.db_table)
        found = inspector(connection).lockers(table, quote(str(column.column)), list(keys))
    except (DatabaseError, InterfaceError):  # without the right to ask, the answer is less detailed
        return []
    label, pk_of = model._meta.label, {str(key): pk for key, pk in keys.items()}
    return [Locked(label, pk_of[str(one)], session) for one, session in found.items() if str(one) in pk_of]


def describe_lockers(using: str, model: AnyModel, pks: Collection[Any]) -> str:
    """Return who has the first few of these rows locked; "": nobody, or unknown."""
    return "; ".join(map(str, lockers(using, model, pks)[:TOLD]))
