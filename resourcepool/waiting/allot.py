"""Who is given what when there is not enough for everybody. No I/O."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

TRIES = 2  # of a row, and for a ticket


@dataclass(frozen=True, slots=True)
class WaitingTicket:
    """A live ticket that still waits.

    Attributes:
        fence: of the ticket: it is another one after every change of what the ticket holds.
        holds: (primary key, fence) of the rows it has been given so far; of several it gets one after the other.
        lasts: for how many microseconds a row that it is given is its own.
    """

    pk: int
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

    def given(self, pk: Any, fence: int) -> "WaitingTicket":
        """Return what it looks like once it has been given this row."""
        return replace(self, fence=self.fence + 1, holds=(*self.holds, (pk, fence)))


def allot(
    line: Sequence[WaitingTicket],
    free: Mapping[str, Sequence[Any]],
    take: Callable[[WaitingTicket, Any], bool] = lambda ticket, pk: True,
) -> dict[int, list[Any]]:
    """Decide who gets which free row: {ticket: primary keys}.

    A ticket takes the first rows that its selector matches and nobody before it took. One for several rows keeps what
    it finds, though it needs more, or it would starve behind tickets for one.

    Args:
        line: the tickets in the order in which they are served.
        free: the free rows that each selector matches, in the order in which they are given.
        take: gives this row to this ticket. False: one of them is not as it was seen, and nobody knows which. The
            ticket then tries another row, and the next one in line this row; after ``TRIES`` each is given up.
    """
    taken: set[Any] = set()
    failed: Counter[Any] = Counter()
    given: dict[int, list[Any]] = {}
    for ticket in line:
        found: list[Any] = []
        in_vain = 0
        for pk in free.get(ticket.selector, ()):
            if len(found) == ticket.lacks or in_vain == TRIES:
                break
            if pk in taken or failed[pk] == TRIES:
                continue
            if take(ticket, pk):
                taken.add(pk)
                found.append(pk)
            else:
                in_vain += 1
                failed[pk] += 1
        if found:
            given[ticket.pk] = found
    return given
