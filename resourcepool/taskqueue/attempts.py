"""The statements that begin and end attempts at tasks. The leader runs each in a guarded transaction.

Statements that are sent for each task are written in SQL: to compile a queryset takes longer than to execute it.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from django.db import connections
from django.db.models import F

from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow
from resourcepool.leases.models import table_of
from resourcepool.leases.statements import NOW, Held, Sql, change
from resourcepool.options import DAY
from resourcepool.taskqueue.abstract import UNFINISHED
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.policy import End, TaskSnapshot

State = Task.State
UNFINISHED_STATES = (State.READY, State.RUNNING, State.BLOCKED)
COLUMNS = TaskSnapshot._fields[:-1]  # due_in is computed


def first_tasks(using: str, stream: str, without: Collection[str], most: int) -> list[TaskSnapshot]:
    """Return the first ``most`` unfinished tasks in order, except in the lanes ``without``.

    If ``most`` is above 1, they come without their parameters, which may be large; see ``with_params``.
    """
    sql = _first_tasks_sql(using, len(without), most)
    rows = dialect.run(connections[using], sql, [stream, *without], dialect.all_rows)
    return [TaskSnapshot(*row) for row in rows]


@lru_cache
def _first_tasks_sql(using: str, lanes: int, most: int) -> str:
    """Return the query of ``first_tasks``; ``lanes``: the number of lanes to skip."""
    db_dialect, table = dialect.of(connections[using]), table_of(connections[using], Task)
    columns = {**table.columns, "pk": table.pk, **({"params": "''"} if most > 1 else {})}
    read = ", ".join(columns[name] for name in COLUMNS)
    due_in = db_dialect.micros_until.format(moment=table.busy_before)
    without = f" AND {columns['lane']} NOT IN ({', '.join(['%s'] * lanes)})" if lanes else ""
    finished = db_dialect.null_in_order.format(column=columns["finished_at"])
    return (
        f"SELECT {read}, {due_in} FROM {table.name} WHERE {columns['stream']} = %s{UNFINISHED.sql}{without}"  # noqa: S608
        f" ORDER BY {finished}, {columns['task_time']}, {table.pk} LIMIT {most:d}"
    )


def with_params(using: str, heads: Sequence[TaskSnapshot]) -> list[TaskSnapshot]:
    """Return these tasks with their parameters. These never change, so no lock is needed."""
    rows = Task.objects.using(using).filter(pk__in=[head.pk for head in heads])
    params = dict(rows.values_list("pk", "params"))
    return [head._replace(params=params[head.pk]) for head in heads if head.pk in params]


def write_outcome(using: str, head: TaskSnapshot, outcome: str) -> None:
    """Store why a ready task is not started as its outcome."""
    mine = Task.objects.using(using).filter(pk=head.pk, fence=head.fence, state=State.READY)
    mine.exclude(outcome=outcome).update(outcome=outcome)


def take_over(using: str, stream: str, term: int) -> int:
    """Make the tasks that a former leader was running ready again, under new fences, which refuse its late writes."""
    tasks = Task.objects.using(using).filter(stream_id=stream).unfinished()
    left = tasks.filter(state=State.RUNNING).exclude(term=term)
    return int(
        left.update(
            state=State.READY, fence=F("fence") + 1, holder="", busy_before=DbNow(), crashes=F("crashes") + 1
        )
    )


def begin(using: str, heads: Sequence[TaskSnapshot], term: int, holder: str) -> list[TaskSnapshot]:
    """Begin an attempt at each of these tasks, under ``head.fence + 1``; return the tasks that had not changed.

    Call it within a transaction, with ``heads`` read after this leader's earlier calls.
    """
    held = [(head.pk, head.fence) for head in heads]
    started = {"state": State.RUNNING.value, "attempts": Sql("attempts + 1"), "term": term, "started_at": NOW}
    count = change(connections[using], Task, "hand over", held, DAY, holder, where=UNFINISHED, also=started)
    if count == len(heads):
        return list(heads)
    if not count:
        return []
    mine = Task.objects.using(using).filter(pk__in=[head.pk for head in heads], state=State.RUNNING, term=term)
    fences = dict(mine.values_list("pk", "fence"))
    return [head for head in heads if fences.get(head.pk) == head.fence + 1]


def end(using: str, attempts: Held, how: End) -> int:
    """End these attempts in the same way; return how many were still current.

    Args:
        attempts: (primary key, fence) pairs.
    """
    if how.state is None:
        return change(connections[using], Task, "delete", attempts, where=UNFINISHED)
    also: dict[str, Any] = {"state": how.state, "outcome": how.outcome}
    if how.state not in UNFINISHED_STATES:
        also["finished_at"] = NOW
    if how.counts:
        also["failures"], also["crashes"] = how.counts
    return change(connections[using], Task, "release", attempts, how.delay, where=UNFINISHED, also=also)
