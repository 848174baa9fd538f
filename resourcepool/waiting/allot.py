"""Decides which waiter gets which row. No I/O."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

MAX_TRIES = 2  # of each row, and of each ticket


@dataclass(frozen=True, slots=True)
class WaitingTicket:
    """A live ticket that is still waiting.

    Attributes:
        fence: of the ticket; changes with every row that the ticket gets or loses.
        holds: (primary key, fence) of the rows it has so far; several rows come one after the other.
        lasts: for how many microseconds a row that is given to it stays its own.
    """

    pk: int
    fence: int = 1
    selector: str = "{}"
    count: int = 1
    holds: tuple[tuple[Any, int], ...] = ()
    holder: str = ""
    grant_us: int = 0
    address: int = 0

    @property
    def lacks(self) -> int:
        """How many rows it still needs."""
        return self.count - len(self.holds)

    def given(self, pk: Any, fence: int) -> "WaitingTicket":
        """Return the ticket as it is after it has got this row."""
        return replace(self, fence=self.fence + 1, holds=(*self.holds, (pk, fence)))

    def without(self, row: tuple[Any, int]) -> "WaitingTicket":
        """Return the ticket as it is after this one of its rows has been taken from it."""
        return replace(self, fence=self.fence + 1, holds=tuple(held for held in self.holds if held != row))


def allot(
    line: Sequence[WaitingTicket],
    free: Mapping[str, Sequence[Any]],
    take: Callable[[WaitingTicket, Any], bool] = lambda ticket, pk: True,
    tries: int = MAX_TRIES,
) -> dict[int, list[Any]]:
    """Decide who gets which free row: {ticket: primary keys}.

    A ticket takes the first rows that match its selector and that no earlier ticket took. A ticket for several rows
    keeps the rows it finds, even if it needs more; otherwise it would starve behind tickets for one row.

    Args:
        line: the tickets in the order in which they are served.
        free: the free rows that each selector matches, in the order in which they are given.
        take: gives this row to this ticket. False: one of the two has changed, and it is unknown which. The ticket then
            tries another row, and the next ticket this row; both are given up after ``tries``.
    """
    taken: set[Any] = set()
    failed: Counter[Any] = Counter()
    given: dict[int, list[Any]] = {}
    for ticket in line:
        found: list[Any] = []
        in_vain = 0
        for pk in free.get(ticket.selector, ()):
            if len(found) == ticket.lacks or in_vain == tries:
                break
            if pk in taken or failed[pk] == tries:
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
