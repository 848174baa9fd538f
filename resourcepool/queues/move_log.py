"""Records moves, in few statements however many queues there are."""

from collections.abc import Mapping, Sequence

from django.db import connections

from resourcepool import dialect
from resourcepool.events.field import stored
from resourcepool.queues.models import Move, TaskType
from resourcepool.queues.planning.changes import Change

BATCH = 5_000  # moves in one statement; SQLite takes 32,766 values
NAMES = (
    *("task_type", "generation", "queue_pk", "queue_id", "what"),
    *("from_server", "to_server", "to_pk", "fence", "reason"),
)


def record(
    using: str,
    task_type: TaskType,
    generation: int,
    changes: Sequence[Change],
    known: Mapping[int | None, str],
) -> None:
    """Add these changes to the moves of ``generation``; ``known``: the names of the servers, by key.

    ``bulk_create`` would take three times as long as the rest of a plan of 10,000 queues.
    """
    connection = connections[using]
    table, at, *names = map(connection.ops.quote_name, (Move._meta.db_table, "at", *NAMES))
    for start in range(0, len(changes), BATCH):
        rows = [_row(task_type, generation, change, known) for change in changes[start : start + BATCH]]
        insert, values = dialect.of(connection).insert_rows(table, names, rows, at)
        dialect.run(connection, insert, values, dialect.row_count)


def _row(
    task_type: TaskType, generation: int, change: Change, known: Mapping[int | None, str]
) -> tuple[str | int | None, ...]:
    queue = change.queue
    return (
        *(task_type.name, generation, queue.pk, queue.queue_id, change.what.value),
        *(known.get(queue.cur, ""), known.get(change.to, ""), change.to),
        *(queue.fence + change.changes_owner, stored(change.reason)),
    )
