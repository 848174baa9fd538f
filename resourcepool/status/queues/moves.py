"""The latest moves of queues: single moves, or grouped by plan."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import BigIntegerField, Count, Func, Max, Min, Subquery

from resourcepool.queues.models import Move
from resourcepool.queues.queries import using_of_queues
from resourcepool.status.snapshots import Since, fetch_all

NEWEST = 10_000  # moves that are read, as many as a plan for the largest queue group has
MAX_GROUPS = 1_000
COLUMNS = ("queue_group", "generation", "queue_id", "what", "from_server", "to_server", "fence", "reason")
GROUP_BY = ("queue_group", "generation", "what", "from_server", "to_server", "reason")


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """One move of one queue, ``ago`` seconds ago; server "": none."""

    queue_group: str
    generation: int
    queue_id: str
    what: Move.Action
    from_server: str
    to_server: str
    fence: int
    reason: str
    ago: float


@dataclass(frozen=True, slots=True)
class MoveGroup:
    """The moves of ``count`` queues in one plan for one reason, ``ago`` seconds ago; ``queue_id``: an example."""

    what: str
    giver: str
    taker: str
    reason: str
    count: int
    queue_id: str
    ago: float


def moves(
    queue_group: str | None = None, *, of: Collection[int] | None = None, limit: int = 20
) -> list[MoveRecord]:
    """Return the latest moves, newest first.

    Args:
        queue_group: the name of a queue group; None: all.
        of: only queues with these keys.
    """
    rows = Move.objects.using(using_of_queues())
    if queue_group is None:
        rows = rows.order_by("-pk")
    else:
        rows = rows.filter(queue_group=queue_group).order_by("-generation", "-queue_pk")
    if of is not None:
        rows = rows.filter(queue_pk__in=of)
    fetched_rows = fetch_all(rows.values(*COLUMNS, ago=Since("at"))[:limit])
    return [MoveRecord(**{**row, "what": Move.Action(row["what"])}) for row in fetched_rows]


def latest_moves() -> dict[str, list[MoveGroup]]:
    """Return {name of a queue group: its latest moves in groups, newest first}, from ``NEWEST`` moves; one query."""
    rows = Move.objects.using(using_of_queues())
    # Not Max(), which makes Django group; not the first by key, for which MariaDB would read the whole table.
    first = rows.order_by().values(first=Func("pk", function="MAX", output_field=BigIntegerField()) - NEWEST)
    alike = rows.filter(pk__gt=Subquery(first)).order_by().values(*GROUP_BY)
    counted = alike.annotate(last=Max("pk"), count=Count("pk"), example=Min("queue_id"), ago=Since(Max("at")))
    columns = ("queue_group", "what", "from_server", "to_server", "reason", "count", "example", "ago")
    groups: dict[str, list[MoveGroup]] = {}
    for name, *group in fetch_all(counted.order_by("-last").values_list(*columns)[:MAX_GROUPS]):
        groups.setdefault(name, []).append(MoveGroup(*group))
    return groups
