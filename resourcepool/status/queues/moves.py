"""The latest moves of queues: one by one, or those of one plan together."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import BigIntegerField, Count, Func, Max, Min, Subquery

from resourcepool.queues.models import Move
from resourcepool.queues.queries import using_of_queues
from resourcepool.status.snapshots import Since, fetch_all

NEWEST = 10_000  # moves that are read: a plan for the largest possible queue group
MAX_GROUPS = 1_000
COLUMNS = ("queue_group", "generation", "queue_id", "what", "from_server", "to_server", "fence", "reason")
ALIKE = ("queue_group", "generation", "what", "from_server", "to_server", "reason")


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """One move of one queue, ``ago`` seconds ago; "" is nobody."""

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
    """The moves of ``count`` queues in one plan for one reason, ``ago`` seconds ago; ``queue_id``: one of them."""

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
    """Return the latest moves, the last one first: of one queue group, of these queues of it (keys), or of all."""
    rows = Move.objects.using(using_of_queues())
    if queue_group is None:
        rows = rows.order_by("-pk")
    else:
        rows = rows.filter(queue_group=queue_group).order_by("-generation", "-queue_pk")
    if of is not None:
        rows = rows.filter(queue_pk__in=of)
    found = fetch_all(rows.values(*COLUMNS, ago=Since("at"))[:limit])
    return [MoveRecord(**{**row, "what": Move.Action(row["what"])}) for row in found]


def latest_moves() -> dict[str, list[MoveGroup]]:
    """Return {name of a queue group: its latest moves in groups, the latest first}, from ``NEWEST`` moves; one query."""
    rows = Move.objects.using(using_of_queues())
    # Not Max(), for which Django would group; not the first by key, for which MariaDB would read the whole table.
    first = rows.order_by().values(first=Func("pk", function="MAX", output_field=BigIntegerField()) - NEWEST)
    groups = rows.filter(pk__gt=Subquery(first)).order_by().values(*ALIKE)
    counted = groups.annotate(last=Max("pk"), count=Count("pk"), one=Min("queue_id"), ago=Since(Max("at")))
    columns = ("queue_group", "what", "from_server", "to_server", "reason", "count", "one", "ago")
    found: dict[str, list[MoveGroup]] = {}
    for name, *group in fetch_all(counted.order_by("-last").values_list(*columns)[:MAX_GROUPS]):
        found.setdefault(name, []).append(MoveGroup(*group))
    return found
