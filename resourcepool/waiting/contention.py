"""What this process remembers of each line: whether one has to wait in it, how fast it moves, what was done for it.

Only guesses: which of two ways is tried first, and when to look. All are right in any case.

Tickets are served in the order of their numbers, so two of them that were served some time apart tell when another one
will be. A waiter sleeps until shortly before that. Then it looks often; and the less often, the longer it has waited:
coming late by a fiftieth of the wait does not matter.
"""

import math

from resourcepool.database.clock import monotonic
from resourcepool.leases.table import Model

LATELY = 2.0  # seconds, like everything here: for which a wait is remembered
REVIVE_EVERY = 2.0
SHORTEST = 0.004  # before the first look, where nothing is known
PAUSE = 0.004  # between looks, at least
LATEST_FIRST = 1.0  # of a first look
NEAR = (0.02, 0.2)  # (share of the wait, most) that a pause takes: for one among the first in line,
FAR = (0.1, 1.0)  # for others,
UNKNOWN = (0.08, 0.2)  # and where that is not known
LATER = (0.01, 0.3)  # (least, share of the wait) by which a first look comes later where notices come in time
SPAN = 0.2  # over which the speed is measured
FORGOTTEN = 2.0  # after which what was learned is of no use
MEMORY = 0.5  # of a measurement over so long two thirds count, and one third of what was known before
LOOKS = 100.0  # a second, of all newcomers in a fast line, for rows that were left free
SOON = 0.1  # after the first look at its ticket, a waiter looks at free rows; mostly a newcomer has done so,
NOT_SO_SOON = 1.0  # and in a fast line one surely has
SLOW = (0.25, 0.2, 2.0)  # the least, the share of the wait, the most between two looks at free rows


class Contention:
    """Remembers for a moment that somebody had to wait."""

    def __init__(self) -> None:
        self._until: dict[tuple[Model, str], float] = {}

    def note(self, model: Model, using: str, *, had_to_wait: bool) -> None:
        """Note whether somebody has just had to wait."""
        if had_to_wait:
            self._until[model, using] = monotonic() + LATELY
        elif self._until:
            self._until.pop((model, using), None)

    def is_likely(self, model: Model, using: str, within: float = LATELY) -> bool:
        """Tell whether the next one is likely to have to wait, as one had ``within`` the last so many seconds."""
        return bool(self._until) and self._until.get((model, using), 0.0) > monotonic() + LATELY - within


class Upkeep:
    """When this process last did what for which pool."""

    def __init__(self) -> None:
        self._done_at: dict[tuple[Model, str, str], float] = {}

    def is_due(self, what: str, model: Model, using: str, every: float) -> bool:
        """Tell whether ``what`` has not been done for this pool for ``every`` seconds, and note it as done."""
        which, now = (model, using, what), monotonic()
        due = now - self._done_at.get(which, -math.inf) > every
        if due:
            self._done_at[which] = now
        return due

    def revive(self, model: Model, using: str) -> None:
        """Bring back what was out of service only until now; for when nothing is free."""
        if self.is_due("revive", model, using, REVIVE_EVERY):
            model.revive(using)


class Speed:
    """Learns how fast one line moves, in ticket numbers a second. Pure arithmetic: the moments are passed in.

    Tickets of other lines have numbers, too; they are counted in the speed as in the distance. Only a guess: with
    priorities and selectors the order is another one.
    """

    def __init__(self) -> None:
        self._speed: float | None = None
        self._from: tuple[int, float] | None = None  # (ticket, when it was served) that is measured from
        self._last = (0, -math.inf)
        self._told = 0.0  # of those served lately, how many did not find out by themselves

    def served(self, ticket: int, now: float) -> None:
        """Note that this ticket was given something."""
        begun = self._from
        if begun is None or now - self._last[1] > FORGOTTEN:
            self._speed, self._from = None, (ticket, now)
        elif now - begun[1] >= SPAN and ticket > begun[0]:
            fresh = (ticket - begun[0]) / (now - begun[1])
            known = fresh if self._speed is None else self._speed
            self._speed = known + (fresh - known) * (1 - math.exp((begun[1] - now) / MEMORY))
            self._from = ticket, now
        if ticket > self._last[0] or now - self._last[1] > FORGOTTEN:
            self._last = ticket, now

    def note_told(self, by_notice: bool) -> None:
        """Note whether somebody who was served was told so before it looked by itself."""
        self._told += (by_notice - self._told) / 8

    @property
    def share_of_looks(self) -> float:
        """How many of the newcomers look at free rows: all of them, unless the line is so fast that some are enough."""
        return min(1.0, LOOKS / self._speed) if self._speed else 1.0

    @property
    def free_pause(self) -> float:
        """How many seconds after its first look at its ticket a waiter looks at free rows."""
        return SOON if self.share_of_looks == 1.0 else NOT_SO_SOON

    def first_pause(self, ticket: int, now: float) -> float:
        """Return how many seconds after taking this ticket to look at it first."""
        number, at = self._last
        if self._speed is None or now - at > FORGOTTEN:
            early = 0.0
        else:
            ahead = max(1.0, ticket - number - self._speed * (now - at))
            early = ahead / self._speed * (1 - ahead**-0.75)  # the nearer, the less is sure
            # If all slept until a slow line gets there it would stay slow: rows wait for those who sleep.
            early = min(early, 0.06 + 0.6 * early)
            early += self._told * (LATER[0] + LATER[1] * early)
        return max(SHORTEST, min(early, LATEST_FIRST))


def pause(waited: float, *, near: bool | None, lasts: float) -> float:
    """Return how many seconds later to look again.

    Args:
        waited: for how many seconds so far.
        near: it is among the first in line; None: that is not known.
        lasts: for how many seconds a row that is given is there to be seen.
    """
    share, most = UNKNOWN if near is None else NEAR if near else FAR
    return min(max(PAUSE, share * waited), most, lasts / 4)


def slow_pause(waited: float) -> float:
    """Return how many seconds later to look at free rows again: most of what comes free is handed over."""
    least, share, most = SLOW
    return min(max(least, share * waited), most)


def speed_of(model: Model, using: str) -> Speed:
    """Return what was learned about the line for rows of ``model``."""
    return _speeds.get((model, using)) or _speeds.setdefault((model, using), Speed())


acquiring = Contention()  # whether a request had to stand in line
releasing = Contention()  # whether a release found somebody in line
upkeep = Upkeep()
_speeds: dict[tuple[Model, str], Speed] = {}
