"""The statements that begin and end an attempt at a task. The leader's own transaction guards each of them."""

from collections.abc import Collection
from typing import Any

from django.db.models import F, Q, Window
from django.db.models.functions import FirstValue, RowNumber

from resourcepool.dialect import DbLater, DbNow, MicrosUntil
from resourcepool.options import DAY
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.order import Head
from resourcepool.taskqueue.policy import Policy, Verdict

State = Task.State
COLUMNS = ["pk", "fence", "key", "type", "params", "lane", "state", "attempts", "failures", "deaths", "term"]


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
    rows = Task.objects.using(using).filter(stream_id=stream).in_line()
    if only_due:
        rows = _first_and_due(rows)
    if without:
        rows = rows.exclude(lane__in=without)
    return [Head(*row) for row in rows.values_list(*COLUMNS, MicrosUntil("busy_before"))[:most]]


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


def begin(using: str, head: Head, term: int, holder: str) -> bool:
    """Begin an attempt at this task under ``head.fence + 1``; False when an operator was faster."""
    mine = Task.objects.using(using).unfinished().filter(pk=head.pk, fence=head.fence)
    return bool(
        mine.update(
            state=State.RUNNING,
            fence=F("fence") + 1,
            holder=holder,
            busy_before=DbLater(DAY),
            attempts=F("attempts") + 1,
            term=term,
            started_at=DbNow(),
        )
    )


def end(using: str, pk: int, fence: int, verdict: Verdict, outcome: str, **counts: Any) -> bool:
    """End the attempt with this fence; False when it is not this attempt's task any more."""
    changes = {"finished_at": DbNow()} if verdict.is_finished else {}
    mine = Task.objects.using(using).unfinished().filter(pk=pk, fence=fence)
    return bool(
        mine.update(
            state=verdict.state,
            fence=F("fence") + 1,
            holder="",
            busy_before=DbLater(verdict.delay),
            outcome=outcome,
            **changes,
            **counts,
        )
    )


def delete(using: str, pk: int, fence: int) -> bool:
    """End the attempt with this fence by deleting its task, which is done."""
    mine = Task.objects.using(using).unfinished().filter(pk=pk, fence=fence)
    return bool(mine.delete()[0])
