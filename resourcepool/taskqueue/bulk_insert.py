"""Insertion of many tasks.

Written in SQL: ``bulk_create`` needs five times as long to prepare the values, most of which are equal in all rows.
"""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.db.models.constants import OnConflict

from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow, FenceField
from resourcepool.db.rows import batches as cut

BATCH = 1_000  # rows in a statement


class Row(NamedTuple):
    """The checked values of a new task; ``task_time`` None: the time of the statement."""

    key: str
    type: str
    params: str
    lane: str
    task_time: datetime.datetime | None


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Split rows into batches of one statement each."""
    return cut(rows, lambda row: len(row.key) + len(row.type) + len(row.params) + len(row.lane), BATCH)


def insert(
    connection: BaseDatabaseWrapper, blank: Model, names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> int:
    """Insert rows in this order, except existing keys; return how many were inserted. An error inserts none.

    Args:
        blank: an unsaved row with the values of all other columns.
        names: the columns of ``rows``. The last one may be a time; None means the time of the statement.
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
    insertion = ops.insert_statement(on_conflict=OnConflict.IGNORE)
    end = ops.on_conflict_suffix_sql(columns, OnConflict.IGNORE, [], [])
    insertion = f"{db_dialect.before_warnings(connection)}{insertion}"
    sql = f"{insertion} {ops.quote_name(meta.db_table)} ({quoted}) VALUES {', '.join(values)} {end}"
    with transaction.atomic(using=connection.alias, savepoint=False):
        added = dialect.run(connection, sql, params, dialect.row_count)
        db_dialect.raise_on_altered_text(connection)
    return int(added)
