"""Writes down what moves, in few statements however many queues there are."""

from collections.abc import Mapping, Sequence

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.queues.models import MAX_REASON, Move, TaskType
from resourcepool.queues.planning import Change

BATCH = 5_000  # moves in one statement; SQLite takes 32,766 values
TEXTS = ("task_type", "queue_id", "what", "from_server", "to_server", "reason")
NUMBERS = ("generation", "queue_pk", "to_pk", "fence")


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
        texts = [text for change in some for text in _texts(task_type, change, known)]
        dialect.run(connection, _insert(connection, generation, some), texts, dialect.row_count)


def _insert(connection: BaseDatabaseWrapper, generation: int, changes: Sequence[Change]) -> str:
    """Return the statement; ``bulk_create`` would take three times as long as the rest of a plan of 10,000 queues."""
    quote = connection.ops.quote_name
    names = ", ".join(map(quote, (*TEXTS, *NUMBERS, "at")))
    holes, now = "%s, " * len(TEXTS), dialect.of(connection).indexed_now
    # Numbers are written out: psycopg takes its time for every placeholder.
    rows = ", ".join(f"({holes}{_numbers(generation, change)}, {now})" for change in changes)
    return f"INSERT INTO {quote(Move._meta.db_table)} ({names}) VALUES {rows}"  # noqa: S608 (names and numbers)


def _numbers(generation: int, change: Change) -> str:
    to = "NULL" if change.to is None else f"{change.to:d}"
    return f"{generation:d}, {change.queue.pk:d}, {to}, {change.queue.fence + change.changes_owner:d}"


def _texts(task_type: TaskType, change: Change, known: Mapping[int | None, str]) -> tuple[str, ...]:
    queue = change.queue
    return (
        task_type.name,
        queue.queue_id,
        change.what.value,
        known.get(queue.cur, ""),
        known.get(change.to, ""),
        change.reason[:MAX_REASON],
    )
