"""The statements that begin and end attempts at tasks. The leader runs each in a guarded transaction.

Statements that are sent for each task are written in SQL: to compile a queryset takes longer than to execute it.
"""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q, Value, Window
from django.db.models.functions import FirstValue, RowNumber

from resourcepool import dialect
from resourcepool.dialect import DbNow, MicrosUntil, micros
from resourcepool.options import DAY
from resourcepool.taskqueue import handlers
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.policy import End, Policy, TaskSnapshot

State = Task.State
OUTCOME: Any = Task._meta.get_field("outcome")
AttemptKey = tuple[int, int]  # the primary key of a task, and its fence
COLUMNS = TaskSnapshot._fields[:-1]  # due_in is computed


class Texts:
    """The parts of these statements for one database."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        quote, db_dialect, meta = connection.ops.quote_name, dialect.of(connection), Task._meta
        assert meta.pk is not None  # noqa: S101 (for the type checker)
        name = {field.name: quote(str(field.column)) for field in meta.concrete_fields}
        self.pk = name["pk"] = name[meta.pk.name]
        table, now, busy = quote(meta.db_table), db_dialect.indexed_now, name["busy_before"]
        self.fence = fence = name["fence"]
        self.unfinished = f"{name['finished_at']} IS NULL"
        due_in = db_dialect.micros_until.format(moment=busy)
        where = f" FROM {table} WHERE {name['stream']} = %s AND {self.unfinished}"
        self.head, self.heads = (
            f"SELECT {', '.join(there.get(column) or name[column] for column in COLUMNS)}, {due_in}{where}"
            for there in ({}, {"params": "''"})
        )
        self.without = f" AND {name['lane']} NOT IN "
        finished = db_dialect.null_in_order.format(column=name["finished_at"])
        self.in_order = f" ORDER BY {finished}, {name['task_time']}, {name['pk']} LIMIT "
        self.begin = (
            f"UPDATE {table} SET {name['state']} = %s, {fence} = {fence} + 1, {name['holder']} = %s, "  # noqa: S608
            f"{busy} = {db_dialect.later}, {name['attempts']} = {name['attempts']} + 1, {name['term']} = %s, "
            f"{name['started_at']} = {now}"
        )
        self.end = (
            f"UPDATE {table} SET {name['state']} = %s, {fence} = {fence} + 1, {name['holder']} = '', "  # noqa: S608
            f"{busy} = {db_dialect.later}, {name['outcome']} = %s"
        )
        self.finished = f", {name['finished_at']} = {now}"
        self.counts = f", {name['failures']} = %s, {name['crashes']} = %s"
        self.delete = f"DELETE FROM {table}"  # noqa: S608


@cache
def statements_of(using: str) -> Texts:
    return Texts(connections[using])


def read_policy(using: str, stream: str) -> Policy | None:
    """Return the settings of a stream; None: it does not exist."""
    row = Stream.objects.using(using).filter(pk=stream).values(*Policy.__dataclass_fields__).first()
    return None if row is None else Policy(**row)


def first_tasks(
    using: str, stream: str, without: Collection[str], most: int, *, only_due: bool = False
) -> list[TaskSnapshot]:
    """Return the first ``most`` unfinished tasks in order, except in the lanes ``without``.

    If ``most`` is above 1, they come without their parameters, which may be large; see ``with_params``.

    Args:
        only_due: return only the first task of each lane, if it may begin now in this process. Reads all unfinished
            tasks.
    """
    if only_due:
        tasks = Task.objects.using(using).filter(stream_id=stream).unfinished_in_order()
        rows = _first_and_due(tasks).exclude(lane__in=without)
        columns = [Value("") if column == "params" else F(column) for column in COLUMNS]
        return [TaskSnapshot(*row) for row in rows.values_list(*columns, MicrosUntil("busy_before"))[:most]]
    texts, lanes = statements_of(using), list(without)
    passed = f"{texts.without}({', '.join(['%s'] * len(lanes))})" if lanes else ""
    sql = f"{texts.head if most == 1 else texts.heads}{passed}{texts.in_order}{most:d}"
    return [
        TaskSnapshot(*row) for row in dialect.run(connections[using], sql, [stream, *lanes], dialect.all_rows)
    ]


def with_params(using: str, heads: Sequence[TaskSnapshot]) -> list[TaskSnapshot]:
    """Return these tasks with their parameters. These never change, so no lock is needed."""
    rows = Task.objects.using(using).filter(pk__in=[head.pk for head in heads])
    params = dict(rows.values_list("pk", "params"))
    return [head._replace(params=params[head.pk]) for head in heads if head.pk in params]


def write_outcome(using: str, head: TaskSnapshot, outcome: str) -> None:
    """Store why a ready task is not started as its outcome."""
    mine = Task.objects.using(using).filter(pk=head.pk, fence=head.fence, state=State.READY)
    mine.exclude(outcome=outcome).update(outcome=outcome)


def _first_and_due(rows: Any) -> Any:
    line: dict[str, Any] = {"partition_by": "lane", "order_by": ["task_time", "pk"]}
    places = rows.annotate(
        place=Window(RowNumber(), **line),
        first_state=Window(FirstValue("state"), **line),
        first_from=Window(FirstValue("busy_before"), **line),
        first_type=Window(FirstValue("type"), **line),
    )
    is_due = Q(first_state=State.READY, first_from__lte=DbNow()) | Q(first_state=State.RUNNING)
    return places.filter(is_due, place=1, first_type__in=list(handlers.task_registry.known))


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
    changes = [State.RUNNING.value, holder, micros(DAY), term]
    count = _change(using, statements_of(using).begin, changes, [(head.pk, head.fence) for head in heads])
    if count == len(heads):
        return list(heads)
    if not count:
        return []
    mine = Task.objects.using(using).filter(pk__in=[head.pk for head in heads], state=State.RUNNING, term=term)
    fences = dict(mine.values_list("pk", "fence"))
    return [head for head in heads if fences.get(head.pk) == head.fence + 1]


def end(using: str, attempts: Sequence[AttemptKey], how: End) -> int:
    """End these attempts in the same way; return how many were still current."""
    texts = statements_of(using)
    if how.decision is None:
        return _change(using, texts.delete, [], attempts)
    outcome = OUTCOME.get_db_prep_save(how.outcome, connections[using])
    changes = [how.decision.state.value, micros(how.decision.delay), outcome, *(how.counts or ())]
    finished = texts.finished if how.decision.is_finished else ""
    counts = texts.counts if how.counts else ""
    return _change(using, f"{texts.end}{finished}{counts}", changes, attempts)


def _change(using: str, sql: str, changes: Sequence[Any], attempts: Sequence[AttemptKey]) -> int:
    """Update the unfinished tasks whose current attempts these are; return how many."""
    texts, keys = statements_of(using), [pk for pk, _ in attempts]
    if len(attempts) == 1:
        match = f"{texts.pk} = %s AND {texts.fence} = %s AND {texts.unfinished}"
        params = list(attempts[0])
    else:
        # MariaDB would read the whole table for "(pk, fence) IN (..)" with one pair.
        fences = f"CASE {texts.pk}{' WHEN %s THEN %s' * len(keys)} END"
        match = f"{texts.pk} IN ({', '.join(['%s'] * len(keys))}) AND {texts.fence} = {fences} AND {texts.unfinished}"
        params = [*keys, *(number for attempt in attempts for number in attempt)]
    return dialect.run(connections[using], f"{sql} WHERE {match}", [*changes, *params], dialect.row_count)
