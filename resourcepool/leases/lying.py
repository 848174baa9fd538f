"""What lies about: rows that look free and are not taken by those who have the right to them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from resourcepool.leases.search import Glance

PATIENCE = 0.2  # seconds after which a row is left to the next in line: the one in front is dead or asleep
PATIENCE_WITH_MANY = 1.0  # the same for rows that one who wants several has collected: it would lose them all
STEP = 0.05  # seconds more for each further one, so that they still come in order
NEAR = 8  # those further back do not hurry for what lies there
PASS_OVER = 0.01, 1.0  # seconds for which a row that could not be had is not tried again: at first, at most
GROWTH = 4


class Lying:
    """Remembers since when rows look free. Pure arithmetic: the moments are passed in.

    A dead waiter's ticket stays in line until it lapses, and has a right to a free row all that time. The others do
    not wait for it: what it has not taken for a while is the next one's, and a moment later the one's after that.
    """

    def __init__(self) -> None:
        self._since: dict[Any, tuple[int, float]] = {}  # {row: (its fence, since when it was seen free)}
        self._refused: dict[Any, tuple[int, float, float]] = {}  # {row: (its fence, not before, for how long)}
        self._offered: dict[int, float] = {}  # {ticket: since when it could take something}

    def note(self, seen: Glance, now: float) -> None:
        """Note what is free now."""
        known = self._since
        self._since = {
            pk: known[pk] if pk in known and known[pk][0] == fence else (fence, now - _lain(seen, pk))
            for pk, fence in seen.free.items()
        }
        # Under another fence it has been taken and freed since.
        self._refused = {pk: no for pk, no in self._refused.items() if seen.free.get(pk) == no[0]}

    def could_not_be_had(self, pks: Iterable[Any], now: float) -> None:
        """Note that a claim for these failed though they looked free: somebody has them locked, or was faster."""
        for pk in pks:
            fence = self._since[pk][0] if pk in self._since else 0
            pause = min(self._refused[pk][2] * GROWTH, PASS_OVER[1]) if pk in self._refused else PASS_OVER[0]
            self._refused[pk] = (fence, now + pause, pause)

    def taken(self, pks: Iterable[Any]) -> None:
        """Note that these are ours now."""
        for pk in pks:
            self._since.pop(pk, None)

    def without(self, free: Collection[Any], now: float) -> list[Any]:
        """Return the rows of ``free`` that are worth trying, in the same order."""
        return [pk for pk in free if pk not in self._refused or self._refused[pk][1] <= now]

    def offered(self, tickets: Iterable[int], now: float) -> None:
        """Note that these, and no others, could take something now."""
        self._offered = {ticket: self._offered.get(ticket, now) for ticket in tickets}

    def stirs(self, rank: int, now: float) -> int:
        """Return how many rows may be taken soon: by those who have the right to them, or by the one at ``rank``."""
        soon = _patience(1, min(rank, NEAR)) + STEP
        return sum(now - self._since[pk][1] < soon for pk in self.without(self._since, now))

    def is_any_left(self, rank: int, now: float) -> bool:
        """Tell whether something lies there for so long that it may be left to the one at ``rank`` a step later."""
        return any(now - since >= _patience(1, rank) - STEP for _, since in self._since.values())

    def asleep(self, served: Mapping[int, Sequence[Any]], rank: int, now: float) -> set[int]:
        """Return the tickets that have not taken what ``served`` gives them for as long as the one at ``rank`` waits.

        What a ticket for several rows is given counts from when the last of them came free: before, it could not
        have taken them.

        Args:
            rank: how many in line come before this one of those to whom nothing is given.
        """
        return {
            ticket
            for ticket, pks in served.items()
            if now - max((self._since[pk][1] for pk in pks if pk in self._since), default=now)
            >= _patience(len(pks), rank)
            and now - self._offered.get(ticket, now) >= STEP
        }


def _lain(seen: Glance, pk: Any) -> float:
    """Return for how long it may have lain there unseen; what is new or back in service has been idle for longer."""
    return min(seen.idle.get(pk, 0.0), PATIENCE)


def _patience(count: int, rank: int) -> float:
    return (PATIENCE if count == 1 else PATIENCE_WITH_MANY) + STEP * (max(rank, 0) + 1)
