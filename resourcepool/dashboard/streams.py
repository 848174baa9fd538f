"""What the dashboard shows of streams: a line for each."""

from collections.abc import Sequence
from dataclasses import dataclass

from resourcepool.dashboard.links import Links
from resourcepool.status.streams import StreamStatus, page_of_streams
from resourcepool.taskqueue.models import Stream, Task


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One stream.

    Attributes:
        id: of its link on the page.
        state: "up", "late" (paused) or "dead" (nothing runs), for the style sheet.
        page, unfinished, dead: addresses of its page, and of the lists of those tasks; "" when there is none.
    """

    id: str
    one: StreamStatus
    state: str
    page: str
    unfinished: str
    dead: str


@dataclass(frozen=True, slots=True)
class StreamPanel:
    """The first streams by name; ``every``: the address of the list of all, where not all are shown, else ""."""

    rows: Sequence[StreamRow] = ()
    has_more: bool = False
    every: str = ""


def stream_panel(links: Links, *, is_with_tasks: bool) -> StreamPanel:
    """Return a line for each of the first streams: five queries, one if there is none.

    Args:
        is_with_tasks: whether the keys and errors of tasks are for whoever asks.
    """
    found, after = page_of_streams()
    rows = [
        StreamRow(
            f"rps{number}",
            one,
            "late" if one.is_paused else "dead" if one.because else "up",
            links.page(Stream, one.name),
            links.list(Task, stream=one.name, standing="unfinished"),
            links.list(Task, stream=one.name, standing=Task.State.DEAD.value),
        )
        for number, one in enumerate(found if is_with_tasks else [one.discreet() for one in found])
    ]
    return StreamPanel(rows, bool(after), links.list(Stream) if after else "")
