"""The status of the queues of a queue group, in detail or as cells of a map; their latest moves."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Count, F, Func, Max, Min, Subquery

from resourcepool.queues.models import Move, Queue
from resourcepool.queues.queries import MAX_QUEUES_AT_ONCE, keys_of, using_of_queues
from resourcepool.status.queues.problems import why_no_owner
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


def queues_of(
    queue_group: QueueGroupStatus, *, only: Collection[str] | None = None, limit: int = 500
) -> list[QueueStatus]:
    """Return the first queues in the order in which they were added, in one statement; ``only``: with these ids."""
    rows = Queue.objects.using(using_of_queues()).filter(queue_group=queue_group.pk)
    if only is not None:
        rows = rows.filter(queue_id__in=only)
    return [queue for _pk, queue in _read(rows, [queue_group], limit)]


def queues_named(queue_group: QueueGroupStatus, queue_ids: Sequence[str]) -> list[QueueStatus]:
    """Return these queues; raises BadOption, which lists missing ids."""
    queues = queues_of(queue_group, only=queue_ids, limit=MAX_QUEUES_AT_ONCE)
    keys_of(queue_group.name, queue_ids, {queue.queue_id: queue.pk for queue in queues})
    return queues


def all_queues(queue_groups: Sequence[QueueGroupStatus]) -> dict[int, list[QueueStatus]]:
    """Return {key of the queue group: its queues in the order in which they were added}, in one statement.

    It reads every row, so use it only for small queue groups.
    """
    found: dict[int, list[QueueStatus]] = {group.pk: [] for group in queue_groups}
    if found:
        rows = Queue.objects.using(using_of_queues()).filter(queue_group__in=found)
        for pk, queue in _read(rows, queue_groups, None):
            found[pk].append(queue)
    return found


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


def _read(
    rows: Any, queue_groups: Iterable[QueueGroupStatus], limit: int | None
) -> Iterator[tuple[int, QueueStatus]]:
    """Yield each queue, after the key of its queue group."""
    servers = {"owner_pk": F("cur_server"), "requester_pk": F("req_server")}
    spans = {"asked_for": Since("requested_at"), "had_for": Since("since")}
    names = {one.pk: str(one) for group in queue_groups for one in group.servers}
    alive = {group.pk: {one.pk: one.as_possible_owner for one in group.alive} for group in queue_groups}
    columns = rows.order_by("pk").values("queue_group", *COLUMNS, **servers, **spans)
    reasons: dict[object, str] = {}
    for row in fetch_all(columns[:limit]):
        group, since = row.pop("queue_group"), row.pop("had_for")
        owner, requester = _name(row["owner_pk"], names), _name(row["requester_pk"], names)
        why, is_owned = "", row["owner_pk"] in alive[group]
        if not is_owned:
            kind = group, row["pin"], *sorted(row["labels"].items())
            why = reasons.get(kind) or why_no_owner(row["labels"], alive[group].values(), row["pin"])
            reasons[kind] = why
        who: dict[str, Any] = {"owner": owner, "is_owned": is_owned, "requester": requester, "why_unowned": why}
        yield group, QueueStatus(**row, **who, since=since)


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
