"""The statements that begin and end an attempt at a task. The leader's own transaction guards each of them."""

from collections.abc import Collection, Sequence
from typing import Any

from django.db import connections
from django.db.models import F, Q, Window
from django.db.models.functions import FirstValue, RowNumber

from resourcepool import dialect
from resourcepool.dialect import DbNow, MicrosUntil
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.order import Head
from resourcepool.taskqueue.policy import End, Policy
from resourcepool.taskqueue.statements import COLUMNS, Attempt, texts_of

State = Task.State
OUTCOME: Any = Task._meta.get_field("outcome")


def policy_of(using: str, stream: str) -> Policy | None:
    """Return how this stream treats its tasks; None: there is no such stream."""
    row = Stream.objects.using(using).filter(pk=stream).values(*Policy.__dataclass_fields__).first()
    return None if row is None else Policy(**row)


def unfinished(using: str, stream: str) -> Any:
    """Return the unfinished tasks of a stream."""
    return Task.objects.using(using).filter(stream_id=stream).unfinished()


def heads(
    using: str, stream: str, without: Collection[str], most: int, *, only_due: bool = False
) -> list[Head]:
    """Return the first ``most`` unfinished tasks in order, but for those of the lanes ``without``.

    Args:
        only_due: leave out each lane whose first task may not begin now, and all but the first task of the others. This
            reads all unfinished tasks.
    """
    if only_due:
        rows = _first_and_due(Task.objects.using(using).filter(stream_id=stream).in_line()).exclude(
            lane__in=without
        )
        return [Head(*row) for row in rows.values_list(*COLUMNS, MicrosUntil("busy_before"))[:most]]
    sql, params = texts_of(connections[using]).heads(stream, list(without), most)
    return [Head(*row) for row in dialect.run(connections[using], sql, params, dialect.all_rows)]


def _first_and_due(rows: Any) -> Any:
    line: dict[str, Any] = {"partition_by": "lane", "order_by": ["task_time", "pk"]}
    places = rows.annotate(
        place=Window(RowNumber(), **line),
        first_state=Window(FirstValue("state"), **line),
        first_from=Window(FirstValue("busy_before"), **line),
    )
    is_due = Q(first_state=State.READY, first_from__lte=DbNow()) | Q(first_state=State.RUNNING)
    return places.filter(is_due, place=1)


def take_over(using: str, stream: str, term: int) -> int:
    """Make the tasks ready that a former leader was running; its late writes find another fence."""
    left = unfinished(using, stream).filter(state=State.RUNNING).exclude(term=term)
    return int(
        left.update(
            state=State.READY, fence=F("fence") + 1, holder="", busy_before=DbNow(), deaths=F("deaths") + 1
        )
    )


def begin(using: str, heads: Sequence[Head], term: int, holder: str) -> list[Head]:
    """Begin an attempt at each of these tasks under ``head.fence + 1``; returns those of which no operator was faster.

    Within a transaction; ``heads`` as the leader saw them after whatever it began before.
    """
    sql, params = texts_of(connections[using]).begin([(head.pk, head.fence) for head in heads], term, holder)
    count = dialect.run(connections[using], sql, params, dialect.row_count)
    if count == len(heads):
        return list(heads)
    if not count:
        return []
    mine = Task.objects.using(using).filter(pk__in=[head.pk for head in heads], state=State.RUNNING, term=term)
    fences = dict(mine.values_list("pk", "fence"))
    return [head for head in heads if fences.get(head.pk) == head.fence + 1]


def end(using: str, attempts: Sequence[Attempt], how: End) -> int:
    """End these attempts, all in the same way; returns how many were still their tasks' attempts."""
    connection = connections[using]
    prepared = how._replace(outcome=OUTCOME.get_db_prep_save(how.outcome, connection))
    sql, params = texts_of(connection).end(attempts, prepared)
    return dialect.run(connection, sql, params, dialect.row_count)
