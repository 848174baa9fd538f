"""Decides when a waiter looks at its ticket, from what this process has seen of the line. Without I/O.

All times are in seconds. A *look* reads tickets, a *scan* reads free rows. Correctness never depends on these times.
"""

import math

# Above some: what 48 or 128 processes on 40 rows lose without it, measured in turns (benchmarks/LOG.md).
# Without it (the first look at once): a third of the rate, and twice the processor time.
FIRST_LOOK = 0.75  # how early the first look comes: before the expected end of the wait by 1 / ahead ** this
# With 12 ms: 48 on 40 needs a fifth less processor time, 128 on 40 a tenth more.
SHORTEST = 0.004  # between two looks
# With ``FAR``: nothing; but a tenth of waits that take seconds.
NEAR = 0.01  # between two looks of the first in line, as a share of their wait so far
# With ``NEAR``: 15 % of the rate, and twice the p99.
FAR = 0.15  # the same for the others
LONGEST = 2.0  # between two looks
# With 0.2: nothing but statements, a tenth of those of 1,000 waiters; scans are for rows that expire.
SCAN = 0.5  # between two scans, as a share of the wait so far
# Without it: half a statement more a cycle.
EMPTY_FOR = 0.05  # how long a release trusts that there are no waiters, and a new ticket that no row is free
# Without it: 15 to 35 % of the rate.
REMEMBERED = 2.0  # how long a caller that had to wait, and a release that found a waiter, are remembered

FIRST_IN_LINE = 4  # tickets that count as near
TOGETHER = 0.005  # looks that are due within this time are one statement
MEASURED_OVER = 0.2  # between two tickets, for the speed of the line


class Pacing:
    """What one process has seen of one line: how long waits are, how fast it moves, and whether it has waiters.

    Tickets are served in the order of their numbers. So the number of tickets since the one that was served last, and
    the speed, show how long a new ticket will wait. All lines share the numbers, which cancels out.

    Attributes:
        waits_until: until then, the next caller probably has to wait.
        awaited_until: until then, a release probably finds waiters.
        empty_until: until then, a release trusts that there are none.
        crowded_until: until then, a new ticket trusts that no row is free, because several tickets wait for one.
        per_second: ticket numbers served per second; 0: unknown.
        moved_at: when it last saw the line move.
    """

    def __init__(self) -> None:
        self.waits_until = self.awaited_until = self.empty_until = self.crowded_until = -math.inf
        self.per_second, self.moved_at = 0.0, -math.inf
        self._last = 0
        self._measured: tuple[int, float] | None = None
        self._mean = 0.06
        self._late = 1.0

    # What it notes

    def served(self, waited: float, now: float, *, was_woken: bool) -> None:
        """Note that a waiter of this process was given its row after ``waited``; ``was_woken``: before it looked."""
        self.waits_until = now + REMEMBERED
        self._mean += (waited - self._mean) / 2
        self._late = 1.5 if was_woken else 1.0  # who is woken in time need not look

    def found_free(self) -> None:
        """Note that a caller found free rows."""
        self.waits_until = -math.inf

    def given(self, ticket: int, now: float) -> None:
        """Note that this ticket was given a row."""
        self.found_waiters(now)
        if self._measured is None or now - self.moved_at > REMEMBERED:
            self.per_second, self._measured = 0.0, (ticket, now)
        elif now - self._measured[1] >= MEASURED_OVER and ticket > self._measured[0]:
            number, at = self._measured
            speed = (ticket - number) / (now - at)
            self.per_second = (self.per_second + speed) / 2 if self.per_second else speed
            self._measured = ticket, now
        if ticket > self._last or now - self.moved_at > REMEMBERED:
            self._last, self.moved_at = ticket, now

    def found_waiters(self, now: float) -> None:
        """Note that there are waiters."""
        self.awaited_until, self.empty_until = now + REMEMBERED, -math.inf

    def found_line(self, length: int, now: float) -> None:
        """Note how many tickets a release found."""
        if length >= FIRST_IN_LINE:
            self.crowded_until = now + EMPTY_FOR

    def found_none(self, asked_at: float) -> None:
        """Note that there was no waiter at ``asked_at``."""
        if asked_at > self.awaited_until - REMEMBERED:
            self.awaited_until = -math.inf
            self.empty_until = asked_at + EMPTY_FOR

    # When to look

    def is_moving(self, now: float) -> bool:
        """Whether the speed of the line is known."""
        return self.per_second > 0 and now - self.moved_at < REMEMBERED

    def ahead(self, ticket: int, now: float) -> float | None:
        """Return how many tickets are probably ahead of this new one; None if the speed of the line is unknown."""
        if not self.is_moving(now):
            return None
        return ticket - self._last - self.per_second * (now - self.moved_at)

    def first_look(self, ticket: int, now: float) -> float:
        """Return the seconds until the first look of a new ticket."""
        expected = 0.0
        if (ahead := self.ahead(ticket, now)) is not None:
            ahead = max(1.0, ahead)
            # The estimate is less certain for near tickets.
            expected = ahead / self.per_second * (1 - ahead**-FIRST_LOOK)
        return min(max(min(expected, self._mean) * self._late, SHORTEST), LONGEST)

    def second_scan(self, now: float) -> float:
        """Return the seconds from the first look to the second scan; the first one comes with the ticket."""
        # With ``SHORTEST`` in a crowded line: 48 on 40 needs a sixth more statements, and the p99 is 1.4 times as long.
        return 5 * SHORTEST if self.crowded_until > now else EMPTY_FOR + SHORTEST


def pause(waited: float, *, is_near: bool, grant_seconds: float) -> float:
    """Return the seconds until the next look, after ``waited``; a row stays granted for ``grant_seconds``."""
    share, most = (NEAR, LONGEST / 4) if is_near else (FAR, LONGEST)
    # Tickets are renewed after a third of that, too: who waits long is only looked at by renewals.
    return min(max(SHORTEST, share * waited), most, grant_seconds / 3)


def scan_pause(waited: float) -> float:
    """Return the seconds until the next scan, after ``waited``."""
    return min(max(SCAN, SCAN * waited), 5 * LONGEST)


MAX_LINES = 1_000  # each lock name has its own line
_lines: dict[tuple[str, str], Pacing] = {}


def pacing_of(line: str, using: str) -> Pacing:
    """Return what this process has seen of this line on this database."""
    if (known := _lines.get((line, using))) is not None:
        return known
    if len(_lines) >= MAX_LINES:
        _lines.clear()
    return _lines.setdefault((line, using), Pacing())
