"""Who is served next when there is not enough for everybody."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from resourcepool.leases.lease import Lease
from resourcepool.leases.table import Model
from resourcepool.leases.verbs import Claim, Grant


@dataclass(frozen=True, slots=True)
class Place:
    """One live ticket as everybody sees it."""

    ticket: int
    selector: str
    count: int
    priority: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """Whoever has the lower one is served first."""
        return self.priority, self.ticket


def allot(places: Sequence[Place], free: Mapping[str, Sequence[Any]]) -> dict[int, list[Any]]:
    """Decide who gets which free row: {ticket: primary keys} for every ticket that can be served in full.

    Every waiting process computes this from the same rows, so they agree without talking. A ticket takes the
    first rows that its selector matches and nobody before it took; one that cannot be served in full yet
    keeps what it has found reserved, or a ticket for many rows would starve behind tickets for one.

    Args:
        places: the live tickets in the order in which they are served.
        free: the free rows that each selector matches, longest idle first.
    """
    taken: set[Any] = set()
    served: dict[int, list[Any]] = {}
    for place in places:
        found: list[Any] = []
        for pk in free.get(place.selector, ()):
            if len(found) == place.count:
                break
            if pk not in taken:
                found.append(pk)
        taken.update(found)
        if len(found) == place.count:
            served[place.ticket] = found
    return served


def left_over(
    places: Sequence[Place],
    free: Mapping[str, Sequence[Any]],
    served: Mapping[int, Sequence[Any]],
    passed: Collection[int],
) -> dict[int, list[Any]]:
    """Decide who gets what those in ``passed`` do not take: like ``allot``, without what ``served`` gives to others."""
    taken = {pk for ticket, pks in served.items() if ticket not in passed for pk in pks}
    others = [place for place in places if place.ticket not in passed and place.ticket not in served]
    return allot(others, {selector: [pk for pk in pks if pk not in taken] for selector, pks in free.items()})


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks of a pool.

    Attributes:
        selector: canonical JSON of the wanted fields; equal text means equal wishes.
        leases: makes the handles of the rows that were granted.
        rest: seconds for which it need not look, because others have just been waiting for longer.
    """

    model: Model
    using: str
    selector: str
    count: int
    priority: int
    claim: Claim
    leases: Callable[[list[Grant]], list[Lease]]
    rest: float = 0.0


@dataclass(eq=False, slots=True)
class Waiter:
    """A request that stands in line, and what becomes of it; ``had_to_wait``: a look has left it unserved."""

    request: Request
    outcome: Future[list[Lease]] = field(default_factory=Future)
    ticket: Lease | None = None
    had_to_wait: bool = False
    not_before: float = 0.0

    @property
    def number(self) -> int:
        """Its ticket's key: who has the lower one came first."""
        assert self.ticket is not None  # noqa: S101 (asked only once it stands in line)
        return int(self.ticket.pk)

    @property
    def has_left(self) -> bool:
        """Whether it was served, failed, or gave up."""
        return self.outcome.done()

    def give(self, grants: list[Grant]) -> None:
        """Hand over what was granted; should the waiter have given up just now, it goes straight back."""
        leases = self.request.leases(grants)
        if self.outcome.set_running_or_notify_cancel():
            self.outcome.set_result(leases)
        else:
            for lease in leases:
                lease.abandon()

    def give_up(self) -> list[Lease]:
        """Stop waiting; returns what was granted in the very last moment, if anything."""
        return [] if self.outcome.cancel() else self.outcome.result()

    def fail(self, error: Exception) -> None:
        """Tell the waiter that it can never be served."""
        if not self.has_left and self.outcome.set_running_or_notify_cancel():
            self.outcome.set_exception(error)
