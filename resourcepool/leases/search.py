"""Looks for free rows, without locks; whether one is still free is decided by the claim."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import IntegerField

from resourcepool import dialect
from resourcepool.leases.retry import retrying
from resourcepool.leases.table import Model, nobody_waits, table_of
from resourcepool.leases.where import Where

NOBODY = Where("0")


@dataclass(frozen=True, slots=True)
class Glance:
    """The rows that are free now, longest idle first, and seconds until the next busy one may be.

    ``free`` is {primary key: fence}; another fence means that the row was taken and freed meanwhile. ``idle`` is
    {primary key: seconds since its busy_before passed}.
    ``ahead`` is what the SQL of that name came to, 0 when the pool has no rows at all. ``is_cut_short``: more rows may
    be free than were asked for.
    """

    free: dict[Any, Any]
    next_in: float | None
    ahead: int
    is_cut_short: bool
    idle: dict[Any, float] = field(default_factory=dict)


def free_rows(
    connection: BaseDatabaseWrapper, model: Model, where: Where, limit: int, *extra: str
) -> list[Any]:
    """Return primary keys of up to ``limit`` rows that a newcomer may claim, longest idle first.

    None of them while anybody stands in line. With ``extra`` columns: tuples that begin with the key.
    """
    table = table_of(connection, model)
    columns = ", ".join([table.pk, *(connection.ops.quote_name(name) for name in extra)])
    sql = (
        f"SELECT {columns} FROM {table.name} WHERE {table.free_by_index}{where.sql}"  # noqa: S608
        f"{nobody_waits(connection)} ORDER BY {table.busy_before} LIMIT {int(limit)}"
    )
    rows = _rows(connection, sql, (*where.params, model._meta.label_lower))
    return (
        [(_python(model, row[0]), *row[1:]) for row in rows]
        if extra
        else [_python(model, pk) for (pk,) in rows]
    )


def glance(
    connection: BaseDatabaseWrapper, model: Model, where: Where, limit: int, ahead: Where = NOBODY
) -> Glance:
    """Return up to ``limit`` free rows, when the next one may come free, and ``ahead``, in one statement."""
    table = table_of(connection, model)
    until = dialect.of(connection).micros_until.format(moment=table.busy_before)
    sql = (
        f"SELECT {table.pk}, {until}, {table.fence}, {ahead.sql} "  # noqa: S608
        f"FROM {table.name} WHERE 1 = 1{table.claimable}{where.sql} "
        f"ORDER BY {table.busy_before} LIMIT {int(limit) + 1}"
    )
    rows = _rows(connection, sql, (*ahead.params, *where.params))
    free = {_python(model, pk): fence for pk, micros, fence, _ in rows[:limit] if micros <= 0}
    waits = [micros / 1_000_000 for _, micros, _, _ in rows if micros > 0]
    idle = {_python(model, pk): -micros / 1_000_000 for pk, micros, _, _ in rows[:limit] if micros <= 0}
    return Glance(free, min(waits, default=None), int(rows[0][3]) if rows else 0, len(free) == limit, idle)


def _rows(connection: BaseDatabaseWrapper, sql: str, params: tuple[Any, ...]) -> list[Any]:
    return retrying(connection, partial(dialect.run, connection, sql, params, dialect.all_rows))


def _python(model: Model, pk: Any) -> Any:
    field = model._meta.pk
    assert field is not None  # noqa: S101 (for the type checker: every model has one)
    is_plain = type(pk) is int and type(field).to_python is IntegerField.to_python
    return pk if is_plain else field.to_python(pk)
