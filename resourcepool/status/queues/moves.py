"""The latest moves of queues: one by one, or those of one plan together."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import BigIntegerField, Count, Func, Max, Min, Subquery

from resourcepool.queues.models import Move
from resourcepool.queues.queries import using_of_queues
from resourcepool.status.reading import Since, fetched

NEWEST = 10_000  # moves that are read: a plan for the largest possible task type
MOST_GROUPS = 1_000
COLUMNS = ("task_type", "generation", "queue_id", "what", "from_server", "to_server", "fence", "reason")
ALIKE = ("task_type", "generation", "what", "from_server", "to_server", "reason")


@dataclass(frozen=True, slots=True)
class Moved:
    """One move of one queue, ``ago`` seconds ago; "" is nobody."""

    task_type: str
    generation: int
    queue_id: str
    what: Move.What
    from_server: str
    to_server: str
    fence: int
    reason: str
    ago: float


@dataclass(frozen=True, slots=True)
class MoveGroup:
    """The moves of ``count`` queues in one plan for one reason, ``ago`` seconds ago; ``queue_id``: one of them."""

    what: str
    giver: str
    taker: str
    reason: str
    count: int
    queue_id: str
    ago: float


def moves(task_type: str | None = None, *, of: Collection[int] | None = None, limit: int = 20) -> list[Moved]:
    """Return the latest moves, the last one first: of one task type, of these queues of it (keys), or of all."""
    rows = Move.objects.using(using_of_queues())
    if task_type is None:
        rows = rows.order_by("-pk")
    else:
        rows = rows.filter(task_type=task_type).order_by("-generation", "-queue_pk")
    if of is not None:
        rows = rows.filter(queue_pk__in=of)
    found = fetched(rows.values(*COLUMNS, ago=Since("at"))[:limit])
    return [Moved(**{**row, "what": Move.What(row["what"])}) for row in found]


def latest_moves() -> dict[str, list[MoveGroup]]:
    """Return {name of a task type: its latest moves in groups, the latest first}, from ``NEWEST`` moves; one query."""
    rows = Move.objects.using(using_of_queues())
    # Not Max(), for which Django would group; not the first by key, for which MariaDB would read the whole table.
    first = rows.order_by().values(first=Func("pk", function="MAX", output_field=BigIntegerField()) - NEWEST)
    groups = rows.filter(pk__gt=Subquery(first)).order_by().values(*ALIKE)
    counted = groups.annotate(last=Max("pk"), count=Count("pk"), one=Min("queue_id"), ago=Since(Max("at")))
    columns = ("task_type", "what", "from_server", "to_server", "reason", "count", "one", "ago")
    found: dict[str, list[MoveGroup]] = {}
    for name, *group in fetched(counted.order_by("-last").values_list(*columns)[:MOST_GROUPS]):
        found.setdefault(name, []).append(MoveGroup(*group))
    return found
