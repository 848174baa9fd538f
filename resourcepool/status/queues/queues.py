"""The queues of a task type: a page at a time, in detail, or all at once as cells of a map."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q
from django.utils.translation import gettext as _

from resourcepool.dialect import MicrosUntil
from resourcepool.labels import listed, printable
from resourcepool.queues.ids import MOST_AT_ONCE, known
from resourcepool.queues.models import Queue
from resourcepool.queues.queries import of_server, using_of_queues
from resourcepool.status.queues.problems import PossibleOwner, why_nobody
from resourcepool.status.queues.task_types import TaskTypeStatus, task_type
from resourcepool.status.reading import Since, ago, fetched

COLUMNS = ("pk", "queue_id", "parameter", "fence", "pin", "labels", "is_retiring")


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
class QueueCell:
    """The place of one queue; durations in seconds, by the database's clock.

    Attributes:
        owner: the key of the server that has it; None: nobody.
        asker: the key of the server that is to get it; None: nobody, or it is being removed.
        had: for how long it has had this owner, or none; None: unknown.
        asked: for how long its owner has been asked to give it up; None: it is not.
    """

    pk: int
    queue_id: str
    owner: int | None
    asker: int | None
    had: float | None
    asked: float | None
    pin: str
    is_retiring: bool


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
        server: only queues that this server has, or has asked for.
        only: only queues with one of these ids.
    """
    wanted = Q(task_type=task_type.pk) if server is None else Q(task_type=task_type.pk) & of_server(server)
    rows = Queue.objects.using(using_of_queues()).filter(wanted).order_by("pk")
    if only is not None:
        rows = rows.filter(queue_id__in=only)
    page = rows.annotate(micros_asked=MicrosUntil("requested_at"), micros_since=MicrosUntil("since"))
    names = {one.pk: str(one) for one in task_type.servers}
    alive = {one.pk: one.as_possible_owner for one in task_type.alive}
    return [_status(row, names, alive) for row in fetched(page[offset : offset + limit])]


def queues_named(task_type: TaskTypeStatus, queue_ids: Sequence[str]) -> list[QueueStatus]:
    """Return these queues; raises BadOption, which names missing ones."""
    found = queues_of(task_type, only=queue_ids, limit=MOST_AT_ONCE)
    known(task_type.name, queue_ids, {queue.queue_id: queue.pk for queue in found})
    return found


def cells(task_types: Collection[int]) -> dict[int, list[QueueCell]]:
    """Return {key of the task type: its queues in the order in which they were added}, in one query.

    It reads every row: use it only for small task types.
    """
    found: dict[int, list[QueueCell]] = {pk: [] for pk in task_types}
    if not found:
        return found
    rows = Queue.objects.using(using_of_queues()).filter(task_type__in=found).order_by("pk")
    columns = ("task_type", "pk", "queue_id", "cur_server", "req_server")
    moments = (Since("since"), Since("requested_at"))
    for of, *cell in fetched(rows.values_list(*columns, *moments, "pin", "is_retiring")):
        found[of].append(QueueCell(*cell))
    return found


def no_such_server(name: str, server: str) -> str:
    """Return a hint that there is no server of that name now; "": there is one. A pin may be for a future server.

    Args:
        name: of the task type.
        server: the name its queues are pinned to; "": none.
    """
    there = sorted({one.name for one in task_type(name).alive})
    if not server or server in there:
        return ""
    text = _("No server is called %(server)s now (there are: %(there)s).")
    return text % {"server": printable(server), "there": listed(there) or _("none")}


def _status(row: Queue, names: Mapping[int, str], alive: Mapping[int, PossibleOwner]) -> QueueStatus:
    owner, requester = row.cur_server_id, row.req_server_id
    is_owned = owner in alive
    return QueueStatus(
        **{name: getattr(row, name) for name in COLUMNS},
        owner=_name(owner, names),
        owner_pk=owner,
        is_owned=is_owned,
        requester=_name(requester, names),
        requester_pk=requester,
        asked_for=ago(row.micros_asked),  # type: ignore[attr-defined]
        since=ago(row.micros_since),  # type: ignore[attr-defined]
        why_unowned="" if is_owned else why_nobody(row.labels, alive.values(), row.pin),
    )


def _name(pk: int | None, names: Mapping[int, str]) -> str:
    return "" if pk is None else names.get(pk, f"#{pk}")
