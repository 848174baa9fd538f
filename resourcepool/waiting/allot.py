"""Who is given what when there is not enough for everybody. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """A live ticket that still waits.

    Attributes:
        fence: of the ticket: it is another one after every change of what the ticket holds.
        holds: (primary key, fence) of the rows it has been given so far; of several it gets one after the other.
        lasts: for how many microseconds a row that it is given is its own.
    """

    ticket: int
    fence: int = 1
    selector: str = "{}"
    count: int = 1
    holds: tuple[tuple[Any, int], ...] = ()
    holder: str = ""
    lasts: int = 0
    address: int = 0

    @property
    def lacks(self) -> int:
        """How many rows it still needs."""
        return self.count - len(self.holds)

    def with_row(self, pk: Any, fence: int) -> tuple[tuple[Any, int], ...]:
        """Return what it holds once it is given this row."""
        return (*self.holds, (pk, fence))


def allot(places: Sequence[Place], free: Mapping[str, Sequence[Any]]) -> dict[int, list[Any]]:
    """Decide who gets which free row: {ticket: primary keys}.

    A ticket takes the first rows that its selector matches and nobody before it took. One for several rows keeps what
    it finds, though it needs more, or it would starve behind tickets for one.

    Args:
        places: the tickets in the order in which they are served.
        free: the free rows that each selector matches, in the order in which they are given.
    """
    taken: set[Any] = set()
    given: dict[int, list[Any]] = {}
    for place in places:
        found = [pk for pk in free.get(place.selector, ()) if pk not in taken][: place.lacks]
        if found:
            taken.update(found)
            given[place.ticket] = found
    return given
