"""What the dashboard shows of streams, dispensers, topics of timers and channels: a line for each."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from resourcepool.dashboard.links import Links
from resourcepool.locks.channels.models import BroadcastMessage, Subscription
from resourcepool.status.channels import CHANNELS
from resourcepool.status.dispensers import DISPENSERS
from resourcepool.status.streams import STREAMS
from resourcepool.status.timers import TOPICS
from resourcepool.status.work.places import Places
from resourcepool.taskqueue.dispenser.models import Bucket, DispenserTask
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.timers.models import Timer, TimerNode


class Kind(NamedTuple):
    """How one kind is shown.

    Attributes:
        mark: what the ids of its links begin with.
        work: of ``access.SYSTEMS``: those who may not see that are told no names and errors of it.
        lists: what its line leads to: a model, and which of the rows that belong to it; None: all rows there are.
        is_wrong: whether something is wrong with one that stands so.
    """

    places: Places
    mark: str
    work: str
    lists: Mapping[str, tuple[Any, Mapping[str, str] | None]]
    is_wrong: Callable[[Any], bool] = lambda one: bool(one.because)


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One of them.

    Attributes:
        id: of its link on the page.
        one: how it stands.
        state: "up", "late" (paused) or "dead" (something is wrong), for the style sheet.
        page: its address; "" when there is none.
        lists: the addresses of what belongs to it, each "" when there is none.
    """

    id: str
    one: Any
    state: str
    page: str
    lists: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlacePanel:
    """The first of a kind, by name; ``every``: the address of the list of all, where not all are shown, else ""."""

    rows: Sequence[PlaceRow] = ()
    has_more: bool = False
    every: str = ""


UNFINISHED = {"standing": "unfinished"}
KINDS = {
    "streams": Kind(
        STREAMS,
        "rps",
        "tasks",
        {"unfinished": (Task, UNFINISHED), "dead": (Task, {"standing": Task.State.DEAD.value})},
    ),
    "dispensers": Kind(
        DISPENSERS,
        "rpd",
        "dispensers",
        {
            "ready": (DispenserTask, {"state": DispenserTask.State.READY.value}),
            "assigned": (DispenserTask, {"state": DispenserTask.State.ASSIGNED.value}),
            "failed": (DispenserTask, {"state": DispenserTask.State.FAILED.value}),
            "buckets": (Bucket, {}),
        },
        is_wrong=lambda one: bool(one.depth and one.because),  # one without tasks is no trouble
    ),
    "topics": Kind(
        TOPICS,
        "rpt",
        "timers",
        {
            "unfinished": (Timer, UNFINISHED),
            "due": (Timer, {"standing": "due"}),
            "dead": (Timer, {"standing": Timer.State.DEAD.value}),
            "nodes": (TimerNode, None),  # which handle any topic
        },
    ),
    "channels": Kind(
        CHANNELS,
        "rpc",
        "subscriptions",
        {"messages": (BroadcastMessage, {}), "durable": (Subscription, {"standing": "durable"})},
    ),
}


def place_panel(links: Links, system: str, systems: Collection[str]) -> PlacePanel:
    """Return a line for each of the first: five queries at most, one if there is none, none if ``system`` is not asked.

    Args:
        system: one of ``KINDS``.
        systems: what is for whoever asks, of ``access.SYSTEMS``.
    """
    if system not in systems:
        return PlacePanel()
    kind = KINDS[system]
    found, after = kind.places.page()
    rows = [
        PlaceRow(
            f"{kind.mark}{number}",
            one,
            _state(kind, one),
            links.page(kind.places.model, one.name),
            {
                name: links.list(model, **({} if which is None else {kind.places.word: one.name, **which}))
                for name, (model, which) in kind.lists.items()
            },
        )
        for number, one in enumerate(found if kind.work in systems else [one.discreet() for one in found])
    ]
    return PlacePanel(rows, bool(after), links.list(kind.places.model) if after else "")


def _state(kind: Kind, one: Any) -> str:
    if getattr(one, "is_paused", False):
        return "late"
    return "dead" if kind.is_wrong(one) else "up"
