"""Rows in batches, rows that are made when needed or locked, and the numbers of rows of many groups."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from django.db import IntegrityError, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow, FenceField
from resourcepool.db.retry import retrying

LENGTH = 250_000  # characters of up to 4 bytes: some database servers allow only 1 MB (max_allowed_packet)

Row = TypeVar("Row")


def batched(rows: Iterable[Row], most: int) -> Iterator[list[Row]]:
    """Yield batches of at most ``most`` rows."""
    left = iter(rows)
    while batch := list(islice(left, most)):
        yield batch


def batches(rows: Iterable[Row], length: Callable[[Row], int], most: int) -> Iterator[list[Row]]:
    """Yield batches of at most ``most`` rows and ``LENGTH`` characters; a longer row is a batch of its own.

    Args:
        length: returns the number of characters of a row.
    """
    batch: list[Row] = []
    total = 0
    for row in rows:
        size = length(row)
        if batch and (len(batch) == most or total + size > LENGTH):
            yield batch
            batch, total = [], 0
        batch.append(row)
        total += size
    if batch:
        yield batch


def in_chunks(rows: Any, most: int) -> Iterator[Any]:
    """Yield ``rows`` by primary key, reading at most ``most`` at a time, without an open cursor."""
    rows = rest = rows.order_by("pk")
    while True:
        chunk: list[Any] = retrying(connections[rows.db], partial(list, rest[:most]))
        yield from chunk
        if len(chunk) < most:
            return
        rest = rows.filter(pk__gt=chunk[-1].pk)


def ensure_row(model: type[models.Model], using: str, pk: Any, **columns: Any) -> bool:
    """Insert the row with this primary key if it is missing; return whether it was.

    Args:
        columns: values of a new row.
    """
    # An insertion would wait for a transaction that locks the row.
    if model._base_manager.using(using).filter(pk=pk).exists():
        return False
    insert_unless_exists(model(pk=pk, **columns), using)
    return True


def insert_unless_exists(row: models.Model, using: str) -> None:
    """Insert this row, unless its key exists; in a transaction of the caller, in a savepoint."""
    with contextlib.suppress(IntegrityError), transaction.atomic(using=using):
        row.save(force_insert=True, using=using)


def insert_many(
    connection: BaseDatabaseWrapper,
    blank: models.Model,
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    on_conflict: OnConflict | None = OnConflict.IGNORE,
    update: Sequence[str] = (),
    unique: Sequence[str] = (),
) -> int:
    """Insert rows in this order, except existing keys; return how many were inserted. An error inserts none.

    Written in SQL: ``bulk_create`` needs five times as long to prepare the values, most of which are equal in all rows.

    Args:
        blank: an unsaved row with the values of all other columns.
        names: the columns of ``rows``. The last one may be a time; None means the time of the statement.
        on_conflict: UPDATE: change the columns ``update`` of existing rows, which the columns ``unique`` identify;
            None: raise IntegrityError if a row exists.
    """
    db_dialect, ops, meta = dialect.of(connection), connection.ops, blank._meta
    texts: list[str] = []
    columns: list[Any] = []
    same: list[Any] = []
    for field in meta.concrete_fields:
        value = getattr(blank, field.attname)
        if field.primary_key or field.name in names:
            continue
        columns.append(field)
        if isinstance(field, FenceField):
            texts.append(db_dialect.micros_now)
        elif isinstance(value, DbNow):
            texts.append(db_dialect.indexed_now)
        else:
            texts.append("%s")
            same.append(field.get_db_prep_save(value, connection))
    columns += [meta.get_field(name) for name in names]
    start = f"({', '.join(texts)}, {'%s, ' * (len(names) - 1)}"
    values, params = [], []
    for row in rows:
        is_now = row[-1] is None
        values.append(f"{start}{db_dialect.indexed_now if is_now else '%s'})")
        params += [*same, *(row[:-1] if is_now else row)]
    quoted = ", ".join(ops.quote_name(str(field.column)) for field in columns)
    insertion = ops.insert_statement(on_conflict=on_conflict)
    end = ops.on_conflict_suffix_sql(columns, on_conflict, update, unique)
    insertion = f"{db_dialect.before_warnings(connection)}{insertion}"
    sql = f"{insertion} {ops.quote_name(meta.db_table)} ({quoted}) VALUES {', '.join(values)} {end}"
    with transaction.atomic(using=connection.alias, savepoint=False):
        added = dialect.run(connection, sql, params, dialect.row_count)
        db_dialect.raise_on_altered_text(connection)
    return int(added)


def for_update(rows: Any, *, skip_locked: bool = False) -> Any:
    """Return a queryset that locks ``rows`` in the order of their primary keys, so that transactions do not deadlock.

    Args:
        skip_locked: leave out rows that another transaction has locked, if the database can.
    """
    skips = skip_locked and connections[rows.db].features.has_select_for_update_skip_locked
    return rows.select_for_update(skip_locked=skips).order_by("pk")


def count_groups(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], *columns: str
) -> list[Counter[tuple[Any, ...]]]:
    """Return, for each of ``groups``, {values of ``columns``: number of rows}.

    Args:
        groups: querysets of exactly these columns, each with its own limit; at most 500, SQLite's limit.
    """
    counted: list[Counter[tuple[Any, ...]]] = [Counter() for _ in groups]
    names = ", ".join(columns)
    for number, *values, count in _of_each(connection, groups, f"{names}, COUNT(*)", f"GROUP BY {names}"):
        counted[number][tuple(values)] = count
    return counted


def count_groups_since(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], *columns: str, since: str
) -> list[dict[tuple[Any, ...], tuple[int, Any]]]:
    """``count_groups`` that adds to each number the lowest value of the column ``since``, or None."""
    counted: list[dict[tuple[Any, ...], tuple[int, Any]]] = [{} for _ in groups]
    names = ", ".join(columns)
    selected = f"{names}, COUNT(*), MIN({since})"
    for number, *values, count, first in _of_each(connection, groups, selected, f"GROUP BY {names}"):
        counted[number][tuple(values)] = count, first
    return counted


def count_and_min(connection: BaseDatabaseWrapper, groups: Sequence[Any], column: str) -> list[tuple[int, Any]]:
    """Return, for each of ``groups``, its number of rows, and the lowest value of ``column``, or None.

    Args:
        groups: querysets of exactly this column; see ``count_groups``.
    """
    rows = sorted(_of_each(connection, groups, f"COUNT(*), MIN({column})"))
    return [(count, value) for _number, count, value in rows]


def _of_each(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], selected: str, grouped: str = ""
) -> list[tuple[Any, ...]]:
    if not groups:
        return []
    parts, params = [], list[Any]()
    for number, rows in enumerate(groups):
        sql, values = rows.query.get_compiler(connection=connection).as_sql()
        parts.append(f"SELECT {number}, {selected} FROM ({sql}) counted {grouped}")  # noqa: S608 (values apart)
        params += values
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        return list(cursor.fetchall())
