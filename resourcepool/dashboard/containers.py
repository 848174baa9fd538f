"""What the dashboard shows of streams, dispensers, topics of timers and channels: a line for each."""

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


class Kind(NamedTuple):
    """How one kind is shown.

    Attributes:
        mark: the start of the ids of its links.
        work: of ``access.SYSTEMS``: those who may not see that are told no names and errors of it.
        lists: what its line leads to: a model, and which of the rows that belong to it; None: all rows there are.
        is_wrong: whether something is wrong with one that stands so.
    """

    places: StatusReader
    mark: str
    work: str
    lists: Mapping[str, tuple[Any, Mapping[str, str] | None]]
    is_wrong: Callable[[Any], bool] = lambda one: bool(one.explanation)


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Attributes:
        id: of its link on the page.
        one: its status.
        page: its address; "" when there is none.
        state: "up", "late" (paused) or "dead" (something is wrong), for the style sheet.
        lists: the addresses of what belongs to it, each "" when there is none.
    """

    id: str
    one: Any
    page: str
    state: str = "up"
    lists: Mapping[str, str] = field(default_factory=dict)


class Panel(NamedTuple):
    """The first lines, by name; ``every``: the address of the list of all; "" when there is none."""

    rows: Sequence[Row] = ()
    has_more: bool = False
    every: str = ""


TASKS, UNFINISHED = DispenserTask.State, {"status": "unfinished"}
KINDS = {
    "streams": Kind(
        STREAMS,
        "rps",
        "tasks",
        {"unfinished": (Task, UNFINISHED), "dead": (Task, {"status": Task.State.DEAD.value})},
        is_wrong=lambda one: bool(one.explanation or one.blocked),
    ),
    "dispensers": Kind(
        DISPENSERS,
        "rpd",
        "dispensers",
        {
            state.value: (DispenserTask, {"state": state.value})
            for state in (TASKS.READY, TASKS.ASSIGNED, TASKS.FAILED)
        }
        | {"buckets": (Bucket, {})},
        is_wrong=lambda one: bool(one.depth and one.explanation),  # one without tasks is no trouble
    ),
    "topics": Kind(
        TOPICS,
        "rpt",
        "timers",
        {
            "unfinished": (Timer, UNFINISHED),
            "due": (Timer, {"status": "due"}),
            "dead": (Timer, {"status": Timer.State.DEAD.value}),
            "nodes": (TimerNode, None),  # which handle any topic
        },
        is_wrong=lambda one: bool(one.explanation or one.late > LATE_AFTER),
    ),
    "channels": Kind(
        CHANNELS,
        "rpc",
        "subscriptions",
        {"messages": (MessageRow, {}), "durable": (Subscription, {"status": "durable"})},
    ),
}


def container_panel(links: Links, system: str, systems: Collection[str]) -> Panel:
    """Return a line for each of the first: five queries at most, one if there is none, none if ``system`` is not asked.

    Args:
        system: one of ``KINDS``.
        systems: what is for whoever asks, of ``access.SYSTEMS``.
    """
    if system not in systems:
        return Panel()
    kind = KINDS[system]
    found, after = kind.places.page()
    shown = found if kind.work in systems else [one.redacted() for one in found]
    every = links.changelist(kind.places.model) if after else ""
    return Panel(
        [_row(links, kind, f"{kind.mark}{number}", one) for number, one in enumerate(shown)], bool(after), every
    )


def _row(links: Links, kind: Kind, mark: str, one: Any) -> Row:
    state = "late" if getattr(one, "is_paused", False) else "dead" if kind.is_wrong(one) else "up"
    lists = {
        name: links.changelist(model, **({} if which is None else {kind.places.word: one.name, **which}))
        for name, (model, which) in kind.lists.items()
    }
    return Row(mark, one, links.change_page(kind.places.model, one.name), state, lists)
