"""How soon a waiter looks again: learned from how long the waits before it took.

A line that moves evenly serves everybody after nearly the same time, so a waiter sleeps until shortly before that. Then
it looks often; and the less often, the longer it has waited: coming late by a fiftieth of the wait does not matter.
"""

SHORTEST = 0.004  # seconds, like everything here: before the first look, where nothing is known yet
PAUSE = 0.008  # between looks
LATEST_FIRST = 0.5  # of a first look
NEAR = (0.02, 0.2)  # (share of the wait, most) that a pause takes: for one among the first in line,
FAR = (0.1, 1.0)  # for others,
UNKNOWN = (0.08, 0.2)  # and where that is not known
HINTED = (0.2, 0.05, 1.0)  # the least, the share, the most, where hints have been arriving
DEVIATIONS = 1.5  # of them before the mean is the first look
WEIGHT = 0.2  # of a new wait in what is learned
SLOW = (0.25, 0.2, 2.0)  # the least, the share of the wait, the most between two looks at free rows


class Backoff:
    """Learns how long a wait takes. Pure arithmetic."""

    def __init__(self) -> None:
        self._mean: float | None = None
        self._deviation = 0.0

    def served(self, waited: float) -> None:
        """Note that somebody was served after so many seconds."""
        if self._mean is None:
            self._mean, self._deviation = waited, waited / 2
            return
        self._deviation += WEIGHT * (abs(waited - self._mean) - self._deviation)
        self._mean += WEIGHT * (waited - self._mean)

    def first_pause(self, *, hinted: bool) -> float:
        """Return how many seconds after taking its ticket a waiter looks first."""
        if self._mean is None:
            return SHORTEST
        early = min(self._mean - DEVIATIONS * self._deviation, LATEST_FIRST)
        return max(SHORTEST, early, HINTED[0] if hinted else 0.0)


def pause(waited: float, *, near: bool | None, hinted: bool, lasts: float) -> float:
    """Return how many seconds later to look again.

    Args:
        waited: for how many seconds so far.
        near: it is among the first in line; None: that is not known.
        hinted: hints have been arriving, so looks are only for those that get lost.
        lasts: for how many seconds a row that is given is there to be seen.
    """
    share, most = UNKNOWN if near is None else NEAR if near else FAR
    least = PAUSE
    if hinted:
        least, share, most = HINTED
    return min(max(least, share * waited), most, lasts / 4)


def slow_pause(waited: float) -> float:
    """Return how many seconds later to look at free rows again: most of what comes free is handed over."""
    least, share, most = SLOW
    return min(max(least, share * waited), most)
