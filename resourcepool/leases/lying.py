"""What lies about: rows that look free and are not taken by those who have the right to them."""

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from resourcepool.leases.search import Glance

PATIENCE = 0.3  # seconds after which a row is left to those further back: the ones in front are dead or asleep
PASS_OVER = (
    1.0  # seconds for which a row is not tried again after a claim for it failed: somebody has it locked
)


class Lying:
    """Remembers since when rows look free. Pure arithmetic: the moments are passed in.

    A dead waiter's ticket stays in line until it lapses, and has a right to a free row all that time. The others do
    not wait for it: what those in front have not taken for a while is open to everybody in line.
    """

    def __init__(self) -> None:
        self._since: dict[
            Any, tuple[Any, float]
        ] = {}  # {row: (what tells this time it is free, since when seen)}
        self._not_before: dict[Any, float] = {}  # when a row that could not be had is tried again

    def note(self, seen: Glance, now: float) -> float | None:
        """Note what is free now; returns in how many seconds something may come free or be left to others."""
        self._since = {
            pk: (token, self._since[pk][1] if pk in self._since and self._since[pk][0] == token else now)
            for pk, token in seen.free.items()
        }
        self._not_before = {pk: until for pk, until in self._not_before.items() if until > now}
        waits = [since + PATIENCE - now for _, since in self._since.values() if since + PATIENCE > now]
        if seen.next_in is not None:
            waits.append(seen.next_in)
        return min(waits, default=None)

    def could_not_be_had(self, pks: Collection[Any], now: float) -> None:
        """Note that a claim for these failed though they looked free."""
        self._not_before.update(dict.fromkeys(pks, now + PASS_OVER))

    def without(self, free: Collection[Any]) -> list[Any]:
        """Return the rows of ``free`` that are worth trying, in the same order."""
        return [pk for pk in free if pk not in self._not_before]

    def is_any_left(self, now: float) -> bool:
        """Tell whether a row is free for so long that it may be left to those further back."""
        return any(now - since >= PATIENCE for _, since in self._since.values())

    def left_by(self, served: Mapping[int, Sequence[Any]], count: int, now: float) -> list[Any]:
        """Return ``count`` rows that those to whom ``served`` gives them do not take; none if there are fewer."""
        offered = {pk for pks in served.values() for pk in pks}
        left = [pk for pk, (_, since) in self._since.items() if pk in offered and now - since >= PATIENCE]
        return random.sample(left, count) if len(left) >= count else []
