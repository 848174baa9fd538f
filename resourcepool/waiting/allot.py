"""Decides which waiter gets which row. Without I/O."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

MAX_TRIES = 2  # per row, and per ticket


@dataclass(frozen=True, slots=True)
class WaitingTicket:
    """A live ticket that is still waiting.

    Attributes:
        fence: of the ticket; increases with every row that the ticket gets or loses.
        holds: (primary key, fence) of the rows that it has so far, if it waits for several.
        grant_us: microseconds for which a row stays granted to it, until it is renewed.
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
        """The number of rows that it still needs."""
        return self.count - len(self.holds)

    def given(self, pk: Any, fence: int) -> "WaitingTicket":
        """Return the ticket with this row added."""
        return replace(self, fence=self.fence + 1, holds=(*self.holds, (pk, fence)))

    def without(self, row: tuple[Any, int]) -> "WaitingTicket":
        """Return the ticket with this row removed."""
        return replace(self, fence=self.fence + 1, holds=tuple(held for held in self.holds if held != row))


def allot(
    line: Sequence[WaitingTicket],
    free: Mapping[str, Sequence[Any]],
    take: Callable[[WaitingTicket, Any], bool] = lambda ticket, pk: True,
    tries: int = MAX_TRIES,
) -> dict[int, list[Any]]:
    """Assign free rows to tickets; returns {ticket: primary keys}.

    A ticket takes the first rows that match its selector and that no earlier ticket took. A ticket for several rows
    keeps the rows it gets, even if it needs more; otherwise it would starve behind tickets for one row.

    Args:
        line: the tickets in the order of service.
        free: the free rows that match each selector, in the order of assignment.
        take: gives a row to a ticket. False: row or ticket changed concurrently. Then the ticket tries another row, and
            the next ticket this row; each is skipped after ``tries``.
    """
    taken: set[Any] = set()
    failed: Counter[Any] = Counter()
    given: dict[int, list[Any]] = {}
    for ticket in line:
        rows: list[Any] = []
        failures = 0
        for pk in free.get(ticket.selector, ()):
            if len(rows) == ticket.lacks or failures == tries:
                break
            if pk in taken or failed[pk] == tries:
                continue
            if take(ticket, pk):
                taken.add(pk)
                rows.append(pk)
            else:
                failures += 1
                failed[pk] += 1
        if rows:
            given[ticket.pk] = rows
    return given
