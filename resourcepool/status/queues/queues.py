"""The status of the queues of a queue group, in detail or as cells of a map; their latest moves."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Count, F, Func, Max, Min, Subquery

from resourcepool.queues.models import Move, Queue
from resourcepool.queues.queries import MAX_QUEUES_AT_ONCE, keys_of, using_of_queues
from resourcepool.status.queues.problems import PossibleOwner, why_no_owner
from resourcepool.status.queues.queue_groups import QueueGroupStatus, queue_group
from resourcepool.status.snapshots import Since, fetch_all
from resourcepool.text import join_names, printable
from resourcepool.translation import gettext as _

NEWEST = 10_000  # moves that are read, as many as a plan for the largest queue group has
MAX_GROUPS = 1_000
MOVE_COLUMNS = ("queue_group", "generation", "queue_id", "what", "from_server", "to_server", "fence", "reason")
GROUP_BY = ("queue_group", "generation", "what", "from_server", "to_server", "reason")
COLUMNS = ("pk", "queue_id", "parameter", "fence", "pin", "labels", "is_retiring")


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue; durations in seconds.

    Attributes:
        owner: the server that has it, such as "web-3 #17"; "": none. ``is_owned``: whether that server is alive.
        requester: the server that has requested it; "": none.
        asked_for: how long it has been requested; None: it is not.
        since: how long it has had this owner, or none; None: unknown.
        why_unowned: why no living server has it; "": one has.
    """

    pk: int
    queue_id: str
    parameter: str
    owner: str
    owner_pk: int | None
    is_owned: bool
    requester: str
    requester_pk: int | None
    fence: int
    pin: str
    labels: Mapping[str, str]
    asked_for: float | None
    since: float | None
    is_retiring: bool
    why_unowned: str = ""


@dataclass(frozen=True, slots=True)
class QueueCell:
    """One queue on the map; durations in seconds, by the database's clock.

    Attributes:
        owner: key of the server that has it; None: none.
        requester: key of the server that has requested it; None: none, or it is being removed.
        owned_for: how long it has had this owner, or none; None: unknown.
        requested_for: how long it has been requested; None: it is not.
    """

    pk: int
    queue_id: str
    owner: int | None
    requester: int | None
    owned_for: float | None
    requested_for: float | None
    pin: str
    is_retiring: bool


def queues_of(
    queue_group: QueueGroupStatus, *, only: Collection[str] | None = None, limit: int = 500
) -> list[QueueStatus]:
    """Return the first queues in the order in which they were added, in one statement; ``only``: with these ids."""
    rows = Queue.objects.using(using_of_queues()).filter(queue_group=queue_group.pk).order_by("pk")
    if only is not None:
        rows = rows.filter(queue_id__in=only)
    servers = {"owner_pk": F("cur_server"), "requester_pk": F("req_server")}
    spans = {"asked_for": Since("requested_at"), "had_for": Since("since")}
    names = {one.pk: str(one) for one in queue_group.servers}
    alive = {one.pk: one.as_possible_owner for one in queue_group.alive}
    fetched_rows = fetch_all(rows.values(*COLUMNS, **servers, **spans)[:limit])
    return [_status(names, alive, since=row.pop("had_for"), **row) for row in fetched_rows]


def queues_named(queue_group: QueueGroupStatus, queue_ids: Sequence[str]) -> list[QueueStatus]:
    """Return these queues; raises BadOption, which lists missing ids."""
    queues = queues_of(queue_group, only=queue_ids, limit=MAX_QUEUES_AT_ONCE)
    keys_of(queue_group.name, queue_ids, {queue.queue_id: queue.pk for queue in queues})
    return queues


def queue_cells(queue_groups: Collection[int]) -> dict[int, list[QueueCell]]:
    """Return {key of the queue group: its queues in the order in which they were added}; one query.

    It reads every row, so use it only for small queue groups.
    """
    cells: dict[int, list[QueueCell]] = {pk: [] for pk in queue_groups}
    if not cells:
        return cells
    rows = Queue.objects.using(using_of_queues()).filter(queue_group__in=cells).order_by("pk")
    columns = ("queue_group", "pk", "queue_id", "cur_server", "req_server")
    moments = (Since("since"), Since("requested_at"))
    for pk, *cell in fetch_all(rows.values_list(*columns, *moments, "pin", "is_retiring")):
        cells[pk].append(QueueCell(*cell))
    return cells


def missing_server_hint(name: str, server: str) -> str:
    """Return a hint that no server of that name is running, as a pin may be for a future server; "": one is.

    Args:
        name: of the queue group.
        server: the name that queues are pinned to; "": no pin.
    """
    running = sorted({one.name for one in queue_group(name).alive})
    if not server or server in running:
        return ""
    text = _("No server named %(server)s is running (running: %(running)s).")
    return text % {"server": printable(server), "running": join_names(running) or _("none")}


def _status(names: Mapping[int, str], alive: Mapping[int, PossibleOwner], **row: Any) -> QueueStatus:
    is_owned = row["owner_pk"] in alive
    return QueueStatus(
        **row,
        owner=_name(row["owner_pk"], names),
        is_owned=is_owned,
        requester=_name(row["requester_pk"], names),
        why_unowned="" if is_owned else why_no_owner(row["labels"], alive.values(), row["pin"]),
    )


def _name(pk: int | None, names: Mapping[int, str]) -> str:
    return "" if pk is None else names.get(pk, f"#{pk}")


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
    fetched_rows = fetch_all(rows.values(*MOVE_COLUMNS, ago=Since("at"))[:limit])
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
