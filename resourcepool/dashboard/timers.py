"""What the dashboard shows of timers: a line for each topic."""

from dataclasses import dataclass

from resourcepool.dashboard.links import Links
from resourcepool.status.timers import TopicStatus, topics
from resourcepool.taskqueue.timers.models import Timer, TimerNode, Topic


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic.

    Attributes:
        id: of its link on the page.
        state: "up", "late" (paused) or "dead" (nothing fires), for the style sheet.
        page, unfinished, due, dead, nodes: addresses of its page, and of those lists; "" when there is none.
    """

    id: str
    one: TopicStatus
    state: str
    page: str
    unfinished: str
    due: str
    dead: str
    nodes: str


def topic_rows(links: Links, *, is_with_timers: bool) -> list[TopicRow]:
    """Return a line for each topic: five queries, one if there is none.

    Args:
        is_with_timers: whether the names and errors of timers are for whoever asks.
    """
    nodes, found = links.list(TimerNode), topics()
    return [
        TopicRow(
            f"rpt{number}",
            one,
            "late" if one.is_paused else "dead" if one.because else "up",
            links.page(Topic, one.name),
            links.list(Timer, topic=one.name, standing="unfinished"),
            links.list(Timer, topic=one.name, standing="due"),
            links.list(Timer, topic=one.name, standing=Timer.State.DEAD.value),
            nodes,
        )
        for number, one in enumerate(found if is_with_timers else [one.discreet() for one in found])
    ]
