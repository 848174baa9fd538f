"""The place of each queue, and the latest moves, to show a whole task type at a glance."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import BigIntegerField, Count, Func, Max, Min, Subquery

from resourcepool.dialect import MicrosUntil
from resourcepool.queues.models import Move, Queue
from resourcepool.queues.queries import using_of_queues
from resourcepool.status.reading import ago, fetched

NEWEST = 10_000  # moves that are read: a plan for the largest possible task type
MOST_MOVES = 1_000  # entries
ALIKE = ("task_type", "generation", "what", "from_server", "to_server", "reason")


@dataclass(frozen=True, slots=True)
class QueueCell:
    """The place of one queue; durations in seconds, by the database's clock.

    Attributes:
        owner: the key of the server that has it; None: nobody.
        had: for how long it has had this owner, or none; None: unknown.
        asked: for how long its owner has been asked to give it up; None: it is not.
        asker: the key of the server that is to get it; None: nobody, or it is being removed.
    """

    pk: int
    queue_id: str
    owner: int | None
    asker: int | None
    had: float | None
    asked: float | None
    pin: str
    is_retiring: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """One move of this many queues at once, for one reason; ``ago`` in seconds, ``queue_id`` of one of them."""

    what: str
    giver: str
    taker: str
    reason: str
    count: int
    queue_id: str
    ago: float


def cells(task_types: Collection[int]) -> dict[int, list[QueueCell]]:
    """Return {key of the task type: its queues in the order in which they were added}, in one query.

    It reads every row: use it only for small task types.
    """
    found: dict[int, list[QueueCell]] = {pk: [] for pk in task_types}
    if not found:
        return found
    using = using_of_queues()
    rows = Queue.objects.using(using).filter(task_type__in=found).order_by("pk")
    columns = (
        *("task_type", "pk", "queue_id", "cur_server", "req_server"),
        *(MicrosUntil("since"), MicrosUntil("requested_at"), "pin", "is_retiring"),
    )
    for of, pk, queue_id, owner, asker, since, asked, *rest in fetched(rows.values_list(*columns)):
        found[of].append(QueueCell(pk, queue_id, owner, asker, ago(since), ago(asked), *rest))
    return found


def latest_moves() -> dict[str, list[Moved]]:
    """Return {name of a task type: its latest moves, the latest first}, from the newest moves of all; one query.

    Moves of many queues in one plan for the same reason are one entry.
    """
    using = using_of_queues()
    rows = Move.objects.using(using)
    # Not Max(), for which Django would group; not the first by key, for which MariaDB would read the whole table.
    first = rows.order_by().values(first=Func("pk", function="MAX", output_field=BigIntegerField()) - NEWEST)
    alike = rows.filter(pk__gt=Subquery(first)).order_by().values_list(*ALIKE)
    counted = alike.annotate(
        last=Max("pk"), count=Count("pk"), one=Min("queue_id"), micros=MicrosUntil(Max("at"))
    )
    found: dict[str, list[Moved]] = {}
    for name, _generation, what, giver, taker, reason, _last, count, one, at in fetched(
        counted.order_by("-last")[:MOST_MOVES]
    ):
        moved = Moved(what, giver, taker, reason, count, one, ago(at) or 0.0)
        found.setdefault(name, []).append(moved)
    return found
