"""Reads free rows without locks; a claim or a hand-over decides later whether a row is still free."""

from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import IntegerField

from resourcepool.db import dialect
from resourcepool.db.dialect import micros
from resourcepool.db.dialect.statement import Where
from resourcepool.db.retry import fetch_rows
from resourcepool.leases.table import Model, table_of

MAX_FREE_ROWS = 1_000  # read at once
LOOKAHEAD = 10.0  # seconds: the longest time between two scans


class FreeRows(NamedTuple):
    """The result of a scan.

    Attributes:
        free: {key: fence} of the free rows, longest idle first.
        next_in: seconds until the next busy row may become free. None: not within ``LOOKAHEAD``, or, for models with a
            line per name, never.
    """

    free: dict[Any, int]
    next_in: float | None


def candidates(
    connection: BaseDatabaseWrapper, model: Model, where: Where, limit: int, *extra: str
) -> list[Any]:
    """Return primary keys of up to ``limit`` free rows, longest idle first.

    Returns tuples of key and ``extra`` columns, if there are any.
    """
    table = table_of(connection, model)
    columns = ", ".join([table.pk, *(connection.ops.quote_name(name) for name in extra)])
    sql = (
        f"SELECT {columns} FROM {table.name} WHERE {table.free_by_index}{where.sql} "  # noqa: S608
        f"ORDER BY {table.busy_before} LIMIT {int(limit)}"
    )
    rows = fetch_rows(connection, sql, where.params)
    return [(python_key(model, pk), *more) if more else python_key(model, pk) for pk, *more in rows]


def read_free_rows(connection: BaseDatabaseWrapper, model: Model, where: Where, limit: int) -> FreeRows:
    """Return up to ``limit`` free rows (at most ``MAX_FREE_ROWS``), and when the next one may come free."""
    table, limit = table_of(connection, model), min(limit, MAX_FREE_ROWS)
    db_dialect = dialect.of(connection)
    until = db_dialect.micros_until.format(moment=table.busy_before)
    soon = db_dialect.indexed_later.replace("%s", str(micros(LOOKAHEAD)))
    # Rows that are still busy are read, too, and one row more than ``limit``: they show ``next_in``.
    # Limited by ``LOOKAHEAD`` for pools: in a busy one, InnoDB would read many deleted index entries of earlier leases
    # before the next busy row.
    which = "1 = 1" if model.line_per_name else f"{table.busy_before} <= {soon}"
    sql = (
        f"SELECT {table.pk}, {table.fence}, {until} FROM {table.name} "  # noqa: S608
        f"WHERE {which}{table.claimable}{where.sql} ORDER BY {table.busy_before} LIMIT {limit + 1}"
    )
    rows = fetch_rows(connection, sql, where.params)
    free = {python_key(model, pk): fence for pk, fence, left in rows[:limit] if left <= 0}
    waits = [left / 1_000_000 for _, _, left in rows if left > 0]
    return FreeRows(free, min(waits, default=None))


def python_key(model: Model, pk: Any) -> Any:
    """Return a primary key as the type of the model's field."""
    field = model._meta.pk
    assert field is not None  # noqa: S101 (for the type checker: every model has one)
    is_plain = type(pk) is int and type(field).to_python is IntegerField.to_python
    return pk if is_plain else field.to_python(pk)
