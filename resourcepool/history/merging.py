"""Makes one event of a lease that is over before its beginning has been written.

The leases that cost are the short ones: a pool that grants a thousand a second writes half as much this way. What is
held for longer has a beginning of its own in the history, because it can be asked since when it is held.
"""

from collections.abc import Iterable
from typing import NamedTuple

from resourcepool.history.models import ENDS
from resourcepool.signals import Fact, What


class Entry(NamedTuple):
    """What becomes one event: ``fact``, and the acquisition of the same grant if that has no event of its own."""

    fact: Fact
    begun: Fact | None = None


def merged(facts: Iterable[Fact]) -> list[Entry]:
    """Return the events that ``facts`` become, in their order; one for a lease that begins and ends among them."""
    entries: list[Entry | None] = []
    begins = What.ACQUIRED  # looked up once, which takes Python 3.11 its time
    begun: dict[
        tuple[object, object, int], tuple[int, Fact]
    ] = {}  # {grant: where in the list, and what, it begins}
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
    """Return the facts that ``entries`` were made of."""
    return [fact for entry in entries for fact in (entry.begun, entry.fact) if fact is not None]
