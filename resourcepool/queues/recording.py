"""Writes down what moves, in few statements however many queues there are."""

from collections.abc import Mapping, Sequence

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.queues.models import MAX_REASON, Move, TaskType
from resourcepool.queues.planning import Change

BATCH = 3_000  # moves in one statement; SQLite takes 32,766 values
COLUMNS = (
    "task_type",
    "generation",
    "queue_pk",
    "queue_id",
    "what",
    "from_server",
    "to_server",
    "to_pk",
    "fence",
    "reason",
)


def record(
    using: str,
    task_type: TaskType,
    generation: int,
    changes: Sequence[Change],
    known: Mapping[int | None, str],
) -> None:
    """Add these changes to the moves of ``generation``; ``known``: what the servers are called, by key."""
    connection = connections[using]
    for start in range(0, len(changes), BATCH):
        some = changes[start : start + BATCH]
        values = [value for change in some for value in _values(task_type, generation, change, known)]
        dialect.run(connection, _insert(connection, len(some)), values, dialect.row_count)


def _insert(connection: BaseDatabaseWrapper, count: int) -> str:
    """Return the statement; ``bulk_create`` takes three times as long as the rest of a plan of 10,000 queues."""
    quote = connection.ops.quote_name
    names = ", ".join(map(quote, (*COLUMNS, "at")))
    row = f"({'%s, ' * len(COLUMNS)}{dialect.of(connection).indexed_now})"
    return f"INSERT INTO {quote(Move._meta.db_table)} ({names}) VALUES {', '.join([row] * count)}"  # noqa: S608


def _values(
    task_type: TaskType, generation: int, change: Change, known: Mapping[int | None, str]
) -> tuple[object, ...]:
    queue = change.queue
    return (
        task_type.name,
        generation,
        queue.pk,
        queue.queue_id,
        change.what.value,
        known.get(queue.cur, ""),
        known.get(change.to, ""),
        change.to,
        queue.fence + change.changes_owner,
        change.reason[:MAX_REASON],
    )
