"""What the dashboard shows of streams: a line for each."""

from dataclasses import dataclass

from resourcepool.dashboard.links import Links
from resourcepool.status.streams import StreamStatus, streams
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


def stream_rows(links: Links, *, is_with_tasks: bool) -> list[StreamRow]:
    """Return a line for each stream: five queries, one if there is none.

    Args:
        is_with_tasks: whether the keys and errors of tasks are for whoever asks.
    """
    found = streams()
    return [
        StreamRow(
            f"rps{number}",
            one,
            "late" if one.is_paused else "dead" if one.because else "up",
            links.page(Stream, one.name),
            links.list(Task, stream=one.name, standing="unfinished"),
            links.list(Task, stream=one.name, standing=Task.State.DEAD.value),
        )
        for number, one in enumerate(found if is_with_tasks else [one.without_task() for one in found])
    ]
