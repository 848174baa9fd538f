"""How soon a waiter looks again: when it expects to be served, and ever less often while nothing moves."""

SHORTEST = 0.003  # seconds, like everything here
GROWTH = 1.5
LONGEST = 0.25
PER_PLACE = 0.010  # what each waiter in front adds to the longest pause
NEARLY = 0.8  # of the expected wait is slept in one go


class Pace:
    """Learns how fast a line moves. Pure arithmetic: the moments are passed in."""

    def __init__(self) -> None:
        self._per_place: float | None = None
        self._place = 0
        self._seen_at = 0.0
        self._pause = SHORTEST

    def joined(self, place: int, now: float) -> None:
        """Note that a waiter took its place, with ``place`` others in front."""
        self._place, self._seen_at, self._pause = place, now, SHORTEST

    def advanced(self, place: int, now: float) -> None:
        """Note that it has ``place`` others in front now; -1: it has been served."""
        passed = self._place - place
        if passed > 0:
            fresh = (now - self._seen_at) / passed
            self._per_place = fresh if self._per_place is None else 0.7 * self._per_place + 0.3 * fresh
            self.joined(max(place, 0), now)

    def stirred(self) -> None:
        """Note that something came free for somebody."""
        self._pause = SHORTEST

    def pause(self, now: float, next_in: float | None) -> float:
        """Return how many seconds to sleep; never past ``next_in``, when a running lease may expire."""
        longest = LONGEST + PER_PLACE * self._place
        left = 0.0 if self._per_place is None else self._per_place * (self._place + 1) - (now - self._seen_at)
        if left > 0:
            pause = NEARLY * left
        else:
            pause, self._pause = self._pause, min(self._pause * GROWTH, longest)
        return max(SHORTEST, min(pause, longest, longest if next_in is None else next_in))
