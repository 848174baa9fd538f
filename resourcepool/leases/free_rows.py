"""Finds free rows without locks, or remembers them; a claim or a hand-over decides whether a row is still free."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import IntegerField

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import micros
from resourcepool.db.dialect.statement import ANY_ROW, Where
from resourcepool.db.retry import fetch_rows
from resourcepool.leases import verbs
from resourcepool.leases.models import Model, table_of
from resourcepool.leases.terms import Grant, Request, Terms

MAX_FREE_ROWS = 1_000  # read at once
LOOKAHEAD = 10.0  # seconds: the longest time between two scans
MAX_KEYS = 1_000  # whose rows are remembered
MAX_ADDED = 64  # rows for one key
CLAIMS_PER_READ = 3


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


class FreeRowCache:
    """Rows that were free a moment ago, by any key, so that a claim need not read them. Only the claim decides.

    Args:
        seconds: how long they are remembered.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._free: dict[Any, list[tuple[float, Any]]] = {}

    def put(self, key: Any, pks: Sequence[Any]) -> None:
        """Remember these rows instead of all others for this key; the last one is tried first."""
        until = monotonic() + self.seconds
        self._rows(key)[:] = [(until, pk) for pk in pks]

    def add(self, key: Any, pk: Any) -> None:
        """Remember this row, too."""
        rows = self._rows(key)
        if len(rows) < MAX_ADDED:
            rows.append((monotonic() + self.seconds, pk))

    def take(self, key: Any) -> Any:
        """Return and forget the row that was remembered last; None if there is none."""
        rows = self._free.get(key, [])
        try:
            until, pk = rows.pop()
        except IndexError:  # possibly another thread took the last one
            return None
        if until > monotonic():
            return pk
        rows.clear()  # the rest are older
        return None

    def _rows(self, key: Any) -> list[tuple[float, Any]]:
        if key not in self._free and len(self._free) >= MAX_KEYS:
            self._free.clear()
        return self._free.setdefault(key, [])


def claim(
    connection: BaseDatabaseWrapper, model: Model, pks: Sequence[Any], terms: Terms, where: Where = ANY_ROW
) -> list[Grant] | None:
    """Claim all of these rows, or none; a single one only if it matches ``where``."""
    if len(pks) > 1:
        return verbs.claim_all(connection, model, pks, terms)
    grant = verbs.claim(connection, model, pks[0], terms, where)
    return None if grant is None else [grant]


def claim_first(
    connection: BaseDatabaseWrapper,
    model: Model,
    rows: Sequence[Any],
    request: Request,
    tried: set[Any],
    where: Where = ANY_ROW,
) -> tuple[list[Grant] | None, Sequence[Any]]:
    """Claim as many of ``rows`` as requested, in this order; return the grants and the rows after them.

    Args:
        rows: primary keys of rows that were free when they were read.
        tried: receives rows that were not free.
    """
    count = request.count
    for start in range(0, len(rows) - count + 1, count)[:CLAIMS_PER_READ]:
        chosen = rows[start : start + count]
        if (grants := claim(connection, model, chosen, request.terms, where)) is not None:
            return grants, rows[start + count :]
        tried.update(chosen if count == 1 else ())
    return None, []
