"""How soon a waiter looks again: the first few in line all the time, the others when they expect to be among them.

The first few must not go by what was learned: if they look late, the line moves slowly, and everybody would
learn to look later still. For the same reason the others wake well before their time.
"""

SHORTEST = 0.004  # seconds, like everything here
GROWTH = 1.4
LONGEST = 0.2  # less than those behind leave to us (lying.py), or they would take us for dead
PER_PLACE = 0.010  # what each waiter in front adds to the longest pause
FIRST_FEW = 4
NEARLY = 0.8  # of the time until it is among the first few is slept in one go


class Pace:
    """Learns how fast a line moves. Pure arithmetic: the moments are passed in."""

    def __init__(self) -> None:
        self._per_place: float | None = None
        self._place = 0
        self._seen_at = 0.0
        self._pause = SHORTEST
        self._few = FIRST_FEW

    def joined(self, place: int, now: float) -> None:
        """Note that a waiter took its place, with ``place`` others in front."""
        self._place, self._seen_at, self._pause = place, now, SHORTEST

    def advanced(self, place: int, now: float) -> None:
        """Note that it has ``place`` others in front now; -1: it has been served."""
        passed = self._place - place
        if passed > 0:
            fresh = (now - self._seen_at) / passed
            self._per_place = fresh if self._per_place is None else 0.7 * self._per_place + 0.3 * fresh
            self._pause = SHORTEST
        if passed:
            self._place, self._seen_at = max(place, 0), now

    def stirred(self, free: int) -> None:
        """Note that so many are free for those in front: it may be among the next to be served."""
        self._few = max(FIRST_FEW, free)
        if free:
            self._pause = SHORTEST

    def pause(self, now: float, next_in: float | None) -> float:
        """Return how many seconds to sleep; never past ``next_in``, when a running lease may expire."""
        longest = LONGEST + PER_PLACE * self._place
        behind = self._place + 1 - self._few
        left = behind * (self._per_place or 0.0) - (now - self._seen_at)
        if left > 0:
            pause = NEARLY * left
        else:
            pause, self._pause = self._pause, min(self._pause * GROWTH, longest)
        return max(SHORTEST, min(pause, longest, longest if next_in is None else next_in))
