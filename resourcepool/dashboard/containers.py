"""The dashboard's cards of streams, dispensers, timer topics and channels: a line for each."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from resourcepool.dashboard.links import Links
from resourcepool.locks.channels.models import Message as MessageRow
from resourcepool.locks.channels.models import Subscription
from resourcepool.status.channels import CHANNELS
from resourcepool.status.work.dispensers import DISPENSERS
from resourcepool.status.work.status_reader import StatusReader
from resourcepool.status.work.streams import STREAMS
from resourcepool.status.work.timers import TOPICS
from resourcepool.taskqueue.dispenser.models import Bucket, DispenserTask
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.timers.models import LATE_AFTER, Timer, TimerNode


class ContainerKind(NamedTuple):
    """How a kind of container is shown.

    Attributes:
        places: reads their statuses.
        id_prefix: of the HTML ids of its links.
        work: a name of ``access.SYSTEMS``; users who may not view that see no names and errors of its work.
        lists: linked lists: a model and the filters of its rows besides the container; None: all rows.
        is_wrong: whether a status is marked as wrong.
    """

    places: StatusReader
    id_prefix: str
    work: str
    lists: Mapping[str, tuple[Any, Mapping[str, str] | None]]
    is_wrong: Callable[[Any], bool] = lambda status: bool(status.explanation)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a card.

    Attributes:
        id: HTML id of its link.
        status: its status, as read from the database.
        url: its page; "": none.
        state: CSS class: "up", "late" (paused) or "dead" (something is wrong).
        links: the URLs of its lists by name; "": none.
    """

    id: str
    status: Any
    url: str
    state: str = "up"
    links: Mapping[str, str] = field(default_factory=dict)


class Panel(NamedTuple):
    """The first lines by name; ``all_url``: the list of all; "": none."""

    rows: Sequence[Row] = ()
    has_more: bool = False
    all_url: str = ""


TASKS, UNFINISHED = DispenserTask.State, {"status": "unfinished"}
KINDS = {
    "streams": ContainerKind(
        STREAMS,
        "rps",
        "tasks",
        {"unfinished": (Task, UNFINISHED), "dead": (Task, {"status": Task.State.DEAD.value})},
        is_wrong=lambda status: bool(status.explanation or status.blocked),
    ),
    "dispensers": ContainerKind(
        DISPENSERS,
        "rpd",
        "dispensers",
        {
            state.value: (DispenserTask, {"state": state.value})
            for state in (TASKS.READY, TASKS.ASSIGNED, TASKS.FAILED)
        }
        | {"buckets": (Bucket, {})},
        is_wrong=lambda status: bool(status.depth and status.explanation),  # nothing is wrong without tasks
    ),
    "topics": ContainerKind(
        TOPICS,
        "rpt",
        "timers",
        {
            "unfinished": (Timer, UNFINISHED),
            "due": (Timer, {"status": "due"}),
            "dead": (Timer, {"status": Timer.State.DEAD.value}),
            "nodes": (TimerNode, None),  # nodes handle any topic
        },
        is_wrong=lambda status: bool(status.explanation or status.late > LATE_AFTER),
    ),
    "channels": ContainerKind(
        CHANNELS,
        "rpc",
        "subscriptions",
        {"messages": (MessageRow, {}), "durable": (Subscription, {"status": "durable"})},
    ),
}


def container_panel(links: Links, system: str, systems: Collection[str]) -> Panel:
    """Return a line for each of the first containers, with at most five queries; one query if there is none.

    Args:
        links: makes the URLs.
        system: a key of ``KINDS``.
        systems: the names of ``access.SYSTEMS`` that the user may view; without ``system`` the panel is empty.
    """
    if system not in systems:
        return Panel()
    kind = KINDS[system]
    statuses, after = kind.places.page()
    if kind.work not in systems:
        statuses = [status.redacted() for status in statuses]
    rows = [_row(links, kind, f"{kind.id_prefix}{number}", status) for number, status in enumerate(statuses)]
    return Panel(rows, bool(after), links.changelist(kind.places.model) if after else "")


def _row(links: Links, kind: ContainerKind, row_id: str, status: Any) -> Row:
    state = "late" if getattr(status, "is_paused", False) else "dead" if kind.is_wrong(status) else "up"
    urls = {
        name: links.changelist(model, **({} if filters is None else {kind.places.word: status.name, **filters}))
        for name, (model, filters) in kind.lists.items()
    }
    return Row(row_id, status, links.change_page(kind.places.model, status.name), state, urls)
