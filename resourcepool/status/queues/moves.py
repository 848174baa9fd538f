"""The queues of a task type, a page at a time, and their moves."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from resourcepool.dialect import MicrosUntil
from resourcepool.queues.ids import MOST_AT_ONCE, known
from resourcepool.queues.models import Move, Queue
from resourcepool.queues.queries import of_server, using_of_queues
from resourcepool.status.queues.no_owner import PossibleOwner, why_nobody
from resourcepool.status.queues.task_types import TaskTypeStatus
from resourcepool.status.reading import ago, fetched

# The fields that are columns.
OF_QUEUE = ("pk", "queue_id", "parameter", "fence", "pin", "labels", "is_retiring")
OF_MOVE = ("task_type", "generation", "queue_id", "from_server", "to_server", "fence", "reason")


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue; durations in seconds.

    Attributes:
        owner: the server that has it, such as "web-3 #17"; "" nobody. ``is_owned``: whether that server lives.
        requester: the server that has asked for it; "" nobody.
        asked_for: for how long its server has been asked to give it up; None: it is not.
        since: for how long it has had this owner, or none; None: unknown.
        why_unowned: why nobody has it; "" if a living server does.
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


def queues_of(
    task_type: TaskTypeStatus,
    *,
    server: int | None = None,
    only: Collection[str] | None = None,
    offset: int = 0,
    limit: int = 500,
) -> list[QueueStatus]:
    """Return a page of queues in the order in which they were added; one statement.

    Args:
        server: only those that this server has, or has asked for.
        only: only those with one of these ids.
    """
    using = using_of_queues()
    wanted = Q(task_type=task_type.pk) if server is None else Q(task_type=task_type.pk) & of_server(server)
    rows = Queue.objects.using(using).filter(wanted).order_by("pk")
    if only is not None:
        rows = rows.filter(queue_id__in=only)
    page = rows.annotate(micros_asked=MicrosUntil("requested_at"), micros_since=MicrosUntil("since"))
    found = fetched(page[offset : offset + limit])
    names = {one.pk: str(one) for one in task_type.servers}
    alive = {one.pk: one.as_possible_owner for one in task_type.alive}
    return [_queue(row, names, alive) for row in found]


def queues_named(task_type: TaskTypeStatus, queue_ids: Sequence[str]) -> list[QueueStatus]:
    """Return these queues; raises BadOption, which names missing ones."""
    found = queues_of(task_type, only=queue_ids, limit=MOST_AT_ONCE)
    known(task_type.name, queue_ids, {queue.queue_id: queue.pk for queue in found})
    return found


def moves(task_type: str | None = None, *, of: Collection[int] | None = None, limit: int = 20) -> list[Moved]:
    """Return the latest moves, the last one first: of one task type, of these queues of it (keys), or of all."""
    using = using_of_queues()
    rows = Move.objects.using(using).annotate(micros_at=MicrosUntil("at"))
    if task_type is None:
        rows = rows.order_by("-pk")
    else:
        rows = rows.filter(task_type=task_type).order_by("-generation", "-queue_pk")
    if of is not None:
        rows = rows.filter(queue_pk__in=of)
    return [_moved(row) for row in fetched(rows[:limit])]


def _queue(row: Queue, names: Mapping[int, str], alive: Mapping[int, PossibleOwner]) -> QueueStatus:
    owner, requester = row.cur_server_id, row.req_server_id
    is_owned = owner in alive
    return QueueStatus(
        **{name: getattr(row, name) for name in OF_QUEUE},
        owner=_name(owner, names),
        owner_pk=owner,
        is_owned=is_owned,
        requester=_name(requester, names),
        requester_pk=requester,
        asked_for=ago(row.micros_asked),  # type: ignore[attr-defined]
        since=ago(row.micros_since),  # type: ignore[attr-defined]
        why_unowned="" if is_owned else why_nobody(row.labels, alive.values(), row.pin),
    )


def _moved(row: Move) -> Moved:
    return Moved(
        **{name: getattr(row, name) for name in OF_MOVE},
        what=Move.What(row.what),
        ago=ago(row.micros_at) or 0.0,  # type: ignore[attr-defined]
    )


def _name(pk: int | None, names: Mapping[int, str]) -> str:
    return "" if pk is None else names.get(pk, f"#{pk}")
