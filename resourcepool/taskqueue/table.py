"""Writes many tasks into their table.

By SQL of our own, because Django's ``bulk_create`` spends five times as long on preparing the values of a row, most of
which are the same in every row.
"""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from resourcepool import dialect
from resourcepool.taskqueue.models import Task

BATCH = 1_000  # rows in a statement
BATCH_LENGTH = 1_000_000  # characters of parameters: MariaDB takes 16 MiB in a statement
MOMENTS = ("task_time", "submitted_at")


class Row(NamedTuple):
    """What is given of a new task, checked; ``task_time`` None: the moment of the statement."""

    key: str
    type: str
    params: str
    lane: str
    task_time: datetime.datetime | None


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Cut them into pieces of which each is one statement."""
    batch: list[Row] = []
    length = 0
    for row in rows:
        if batch and (len(batch) == BATCH or length + len(row.params) > BATCH_LENGTH):
            yield batch
            batch, length = [], 0
        batch.append(row)
        length += len(row.params)
    if batch:
        yield batch


def insert(connection: BaseDatabaseWrapper, stream: str, rows: Sequence[Row]) -> int:
    """Insert them in this order, but for those whose key is there already; returns how many were inserted."""
    given = (*Row._fields, *MOMENTS, "fence", "id")
    every = {field.name: field for field in Task._meta.concrete_fields}
    fixed = [field for name, field in every.items() if name not in given]
    columns = [*fixed, *(every[name] for name in (*Row._fields[:-1], "submitted_at", "fence", "task_time"))]
    blank = Task(stream_id=stream)
    same = [field.get_db_prep_save(getattr(blank, field.attname), connection) for field in fixed]
    speaks, ops = dialect.of(connection), connection.ops
    values = f"({'%s, ' * (len(fixed) + len(Row._fields) - 1)}{speaks.indexed_now}, {speaks.micros_now}, "
    texts, params = [], []
    for row in rows:
        params += [*same, *row[:-1]]
        if row.task_time is None:
            texts.append(f"{values}{speaks.indexed_now})")
        else:
            texts.append(f"{values}%s)")
            params.append(every["task_time"].get_db_prep_save(row.task_time, connection))
    names = ", ".join(ops.quote_name(str(field.column)) for field in columns)
    start = ops.insert_statement(on_conflict=OnConflict.IGNORE)
    end = ops.on_conflict_suffix_sql(columns, OnConflict.IGNORE, [], [])
    sql = f"{start} {ops.quote_name(Task._meta.db_table)} ({names}) VALUES {', '.join(texts)} {end}"
    return int(dialect.run(connection, sql, params, dialect.row_count))
