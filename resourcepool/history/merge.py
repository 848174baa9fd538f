"""Makes one event of a lease that ends before its acquisition has been written.

This halves the writes of a pool with many short leases. A longer lease has an event of its acquisition, which tells
since when it is held.
"""

from collections.abc import Iterable
from typing import NamedTuple

from resourcepool.history.models import ENDS
from resourcepool.signals import EventKind, RowEvent


class Entry(NamedTuple):
    """The content of one event: ``event``, and the acquisition of the same grant if that has no event of its own."""

    event: RowEvent
    begun: RowEvent | None = None


def merged(events: Iterable[RowEvent]) -> list[Entry]:
    """Return the events for ``events``, in order; one for a lease that begins and ends among them."""
    entries: list[Entry | None] = []
    begins = EventKind.ACQUIRED  # looked up once: enum members are slow in Python 3.11
    begun: dict[tuple[object, object, int], tuple[int, RowEvent]] = {}  # {grant: index, and acquisition}
    for event in events:
        grant = (event.model, event.pk, event.fence)
        if event.kind is begins:
            begun[grant] = len(entries), event
            entries.append(Entry(event))
        elif (beginning := begun.pop(grant, None)) is not None and event.kind in ENDS:
            entries[beginning[0]] = None
            entries.append(Entry(event, beginning[1]))
        else:
            entries.append(Entry(event))
    return [entry for entry in entries if entry is not None]


def taken_apart(entries: Iterable[Entry]) -> list[RowEvent]:
    """Return the facts in ``entries``."""
    return [event for entry in entries for event in (entry.begun, entry.event) if event is not None]
