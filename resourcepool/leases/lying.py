"""What lies about: rows that look free and are not taken by those who have the right to them."""

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from resourcepool.leases.search import Glance

PATIENCE = 0.2  # seconds after which a row is left to the next in line: the one in front is dead or asleep
STEP = 0.05  # seconds more for each further one, so that they still come in order
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

    def note(self, seen: Glance, now: float) -> None:
        """Note what is free now."""
        self._since = {
            pk: (fence, self._since[pk][1] if pk in self._since and self._since[pk][0] == fence else now)
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

    def fresh(self, now: float) -> int:
        """Return how many rows may still be taken by those who have the right to them."""
        return sum(now - self._since[pk][1] < PATIENCE for pk in self.without(self._since, now))

    def is_any_left(self, rank: int, now: float) -> bool:
        """Tell whether something lies there for so long that it is left to the one at ``rank``; see ``left_by``."""
        return any(now - since >= _patience(rank) for _, since in self._since.values())

    def left_by(self, served: Mapping[int, Sequence[Any]], count: int, rank: int, now: float) -> list[Any]:
        """Return ``count`` rows that those to whom ``served`` gives them do not take; none if there are fewer."""
        asleep = self.asleep(served, rank, now)
        left = [pk for ticket in asleep for pk in served[ticket] if pk in self._since]
        return random.sample(left, count) if len(left) >= count else []

    def asleep(self, served: Mapping[int, Sequence[Any]], rank: int, now: float) -> set[int]:
        """Return the tickets that do not take what ``served`` gives them.

        What a ticket for several rows is given counts from when the last of them came free: before, it could not
        have taken them.

        Args:
            rank: how many in line come before this one of those to whom nothing is given.
        """
        tickets = set()
        for ticket, pks in served.items():
            since = max((self._since[pk][1] for pk in pks if pk in self._since), default=now)
            if now - since >= _patience(rank):
                tickets.add(ticket)
        return tickets


def _patience(rank: int) -> float:
    return PATIENCE + STEP * max(rank, 0)
