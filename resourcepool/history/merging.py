"""Makes one event of a lease that ends before its acquisition has been written.

This halves the writes of a pool with many short leases. A longer lease has an event of its acquisition, which tells
since when it is held.
"""

from collections.abc import Iterable
from typing import NamedTuple

from resourcepool.history.models import ENDS
from resourcepool.signals import Fact, What


class Entry(NamedTuple):
    """The content of one event: ``fact``, and the acquisition of the same grant if that has no event of its own."""

    fact: Fact
    begun: Fact | None = None


def merged(facts: Iterable[Fact]) -> list[Entry]:
    """Return the events for ``facts``, in order; one for a lease that begins and ends among them."""
    entries: list[Entry | None] = []
    begins = What.ACQUIRED  # looked up once: enum members are slow in Python 3.11
    begun: dict[tuple[object, object, int], tuple[int, Fact]] = {}  # {grant: index, and acquisition}
    for fact in facts:
        grant = (fact.model, fact.pk, fact.fence)
        if fact.what is begins:
            begun[grant] = len(entries), fact
            entries.append(Entry(fact))
        elif (beginning := begun.pop(grant, None)) is not None and fact.what in ENDS:
            entries[beginning[0]] = None
            entries.append(Entry(fact, beginning[1]))
        else:
            entries.append(Entry(fact))
    return [entry for entry in entries if entry is not None]


def taken_apart(entries: Iterable[Entry]) -> list[Fact]:
    """Return the facts in ``entries``."""
    return [fact for entry in entries for fact in (entry.begun, entry.fact) if fact is not None]
