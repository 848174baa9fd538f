"""What conditions promise: who waits is notified, and no notification is lost."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.concurrency.evidence import Event

DISTURBS = ("restarted", "stalled")  # everybody
STOPS = ("stopped", "continued")  # one worker


class Stand(NamedTuple):
    """Somebody who certainly stood in line from ``since`` to ``until``."""

    name: str
    since: float
    until: float
    who: int


def missed(events: Sequence[Event]) -> Iterator[str]:
    """Yield each ``notify`` that found nobody while somebody stood in line."""
    stands = [*_in_vain(events), *_until_notified(events)]
    for told in events:
        if told.what == "told" and not told.fence:
            for one in stands:
                if one.name == told.text and one.since < told.since and told.at < one.until:
                    yield f"{told.text}: {told.pid} saw nobody at {told.at:.6f}, {one.who} there since {one.since:.6f}"


def _in_vain(events: Sequence[Event]) -> Iterator[Stand]:
    """Yield those whose time was over. The place of one who stood still may have lapsed: that is no evidence."""
    disturbed = [event for event in events if event.what in (*DISTURBS, *STOPS)]
    for wait in events:
        if wait.what == "late" and not any(_disturbs(event, wait) for event in disturbed):
            until, name = wait.text.split()
            yield Stand(name, wait.since, float(until), wait.pid)


def _until_notified(events: Sequence[Event]) -> Iterator[Stand]:
    """Yield those who were woken, up to the ``notify`` whose notification they have taken."""
    notified = {event.pk: event for event in events if event.what == "notified"}
    told = [event for event in events if event.what == "told"]
    taken = [event for event in events if event.what == "taken" and event.pk in notified]
    for wait in events:
        if wait.what == "woken":
            for one in (one for one in taken if one.pid == wait.pid and wait.since < one.at < wait.at):
                by = notified[one.pk]
                begun = [event.since for event in told if event.pid == by.pid and event.since <= by.at]
                yield Stand(wait.text.split()[1], wait.since, max(begun, default=0.0), wait.pid)


def _disturbs(event: Event, wait: Event) -> bool:
    return (event.what in DISTURBS or event.pid == wait.pid) and (
        (event.since or event.at) < wait.at and wait.since < event.at
    )


def lost(events: Sequence[Event]) -> Iterator[str]:
    """Yield each notification that woke nobody: not whom it was for, nor the next one, nor who waited in the end.

    One whose waiter could not go on (it stood still, or got an error) is removed if nobody is in line just then.
    """
    taken = {event.pk for event in events if event.what in ("taken", "given_back")}
    for event in events:
        if event.what == "notified" and event.pk not in taken:
            yield f"the one of ticket {event.pk}, of {event.at:.6f} by {event.pid}"
