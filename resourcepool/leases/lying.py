"""What lies about: rows that look free and are not taken by those who have the right to them."""

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from resourcepool.leases.search import Glance

PATIENCE = 0.2  # seconds after which a row is left to the next in line: the one in front is dead or asleep
STEP = 0.05  # seconds more for each further one, so that they still come in order
PASS_OVER = (
    1.0  # seconds for which a row is not tried again after a claim for it failed: somebody has it locked
)


class Lying:
    """Remembers since when rows look free. Pure arithmetic: the moments are passed in.

    A dead waiter's ticket stays in line until it lapses, and has a right to a free row all that time. The others do
    not wait for it: what it has not taken for a while is the next one's, and a moment later the one's after that.
    """

    def __init__(self) -> None:
        self._since: dict[Any, tuple[Any, float]] = {}  # {row: (its fence, since when it was seen free)}
        self._not_before: dict[Any, float] = {}  # when a row that could not be had is tried again

    def note(self, seen: Glance, now: float) -> None:
        """Note what is free now."""
        self._since = {
            pk: (fence, self._since[pk][1] if pk in self._since and self._since[pk][0] == fence else now)
            for pk, fence in seen.free.items()
        }
        self._not_before = {pk: until for pk, until in self._not_before.items() if until > now}

    def fresh(self, now: float) -> int:
        """Return how many rows may still be taken by those who have the right to them."""
        return sum(
            now - since < PATIENCE for pk, (_, since) in self._since.items() if pk not in self._not_before
        )

    def could_not_be_had(self, pks: Collection[Any], now: float) -> None:
        """Note that a claim for these failed though they looked free."""
        self._not_before.update(dict.fromkeys(pks, now + PASS_OVER))

    def without(self, free: Collection[Any]) -> list[Any]:
        """Return the rows of ``free`` that are worth trying, in the same order."""
        return [pk for pk in free if pk not in self._not_before]

    def is_any_left(self, rank: int, now: float) -> bool:
        """Tell whether something lies there for so long that it is left to the one at ``rank``; see ``left_by``."""
        return any(now - since >= _patience(rank) for _, since in self._since.values())

    def left_by(self, served: Mapping[int, Sequence[Any]], count: int, rank: int, now: float) -> list[Any]:
        """Return ``count`` rows that those to whom ``served`` gives them do not take; none if there are fewer.

        Args:
            rank: how many in line come before this one of those to whom nothing is given.
        """
        offered = {pk for pks in served.values() for pk in pks}
        left = [pk for pk, (_, at) in self._since.items() if pk in offered and now - at >= _patience(rank)]
        return random.sample(left, count) if len(left) >= count else []


def _patience(rank: int) -> float:
    return PATIENCE + STEP * rank
