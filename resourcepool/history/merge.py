"""Merges the acquisition and the end of a short lease into one event, if neither has been written yet.

This halves the writes of a pool with many short leases. A longer lease has an event of its acquisition, so that pages
can show since when it is held. Such short grants of locks are left out, unless the settings ask for their history.
"""

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Model

from resourcepool.conf import pool_setting
from resourcepool.history.models import ENDS
from resourcepool.signals import EventKind, RowEvent

NOT_SHORT = {"history": False}  # what locks declare, in effect


class Entry(NamedTuple):
    """One row of the history: ``event``, and the acquisition of the same grant if it is merged into it."""

    event: RowEvent
    begun: RowEvent | None = None


def merge_events(events: Iterable[RowEvent]) -> list[Entry]:
    """Return the rows to write for ``events``, in order; a lease that begins and ends among them becomes one row.

    Of a model with ``records_short_grants`` False it becomes none, unless its own settings turn its history on.
    """
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
            if _records_short_grants(event.model):
                entries.append(Entry(event, beginning[1]))
        else:
            entries.append(Entry(event))
    return [entry for entry in entries if entry is not None]


def _records_short_grants(model: type[Model]) -> bool:
    return (
        getattr(model, "records_short_grants", True)
        or pool_setting(model._meta.label, "history", NOT_SHORT) is True
    )
