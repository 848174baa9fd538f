"""Estimates of this process for each line: whether callers have to wait, and how fast the line moves.

They only choose what to try first, and when to poll; correctness never depends on them.

Tickets are served in the order of their numbers, so two tickets that were served some time apart predict when another
will be. A waiter sleeps until shortly before that. Then it polls often at first, and less often the longer it has
waited, so that the delay stays about a fiftieth of the wait.
"""

import math

from resourcepool.database.clock import monotonic
from resourcepool.leases.table import Model

# All times are in seconds. A "check" reads tickets, a "scan" reads free rows.
MAX_REMEMBERED_LINES = 1_000  # each lock name has its own line
REMEMBERED_FOR = 2.0  # after a caller had to wait
REVIVE_EVERY = 2.0  # between two returns of due rows to service
MIN_FIRST_CHECK = 0.004  # delay of the first check; used while the speed is unknown
MIN_CHECK_INTERVAL = 0.004
MAX_FIRST_CHECK = 1.0
DEFAULT_WAIT = 0.06  # maximum expected wait, while no wait was measured
NEAR = (0.02, 0.2)  # check interval (share of the wait, maximum) of the first tickets in line,
FAR = (0.1, 1.0)  # of the others,
UNKNOWN = (0.08, 0.2)  # and if the position is unknown
WAKEUP_GRACE = (0.01, 0.3)  # (minimum, share) added to the first check where wake-ups arrive in time
MEASURED_OVER = 0.2  # minimum time between two tickets for a measurement of the speed
DISCARDED_AFTER = 2.0  # for estimates
AVERAGED_OVER = 0.5  # a measurement over this time counts two thirds, the previous estimate one third
MAX_SCANS_PER_SECOND = 100.0  # by all new callers of a fast line together
NO_WAITER_TTL = 0.05  # how long a release trusts that there are no waiters
FIRST_SCAN_DELAY = 0.06  # after a waiter's first check; finds rows left free because of ``NoWaiterCache``
FAST_LINE_SCAN_DELAY = 1.0  # the same in a fast line, where releases do not use the cache
LAST_CHECK_BEFORE_TIMEOUT = 0.015  # before the timeout of a waiter, if its first check would come later
SCAN_INTERVAL = (0.25, 0.2, 2.0)  # minimum, share of the wait, maximum

NOT_CACHED = (0.0, 0.0)


class RecentWaits:
    """Remembers for two seconds that a caller had to wait.

    Attributes:
        until: {(line, database): end of the two seconds}. Usually empty, so test it before ``is_likely``.
    """

    def __init__(self) -> None:
        self.until: dict[tuple[str, str], float] = {}

    def note(self, line: str, using: str, *, had_to_wait: bool) -> None:
        """Note whether a caller just had to wait."""
        if had_to_wait:
            if len(self.until) >= MAX_REMEMBERED_LINES:
                self.until.clear()
            self.until[line, using] = monotonic() + REMEMBERED_FOR
        else:
            self.until.pop((line, using), None)

    def is_likely(self, line: str, using: str, within: float = REMEMBERED_FOR) -> bool:
        """Whether the next caller is likely to wait, because one waited in the last ``within`` seconds."""
        return self.until.get((line, using), 0.0) > monotonic() + REMEMBERED_FOR - within


class NoWaiterCache:
    """Remembers for 50 ms that a line has no waiters, so that not every release has to query for them.

    A waiter that arrives meanwhile finds the row by its own scan, which comes after these 50 ms.
    """

    def __init__(self) -> None:
        # {(line, database): (valid from, valid until)}
        self._known: dict[tuple[str, str], tuple[float, float]] = {}

    def note_no_waiter(self, line: str, using: str, asked_at: float) -> None:
        """Note that there was no waiter at ``asked_at``, by this process's clock."""
        not_before, _ = self._known.get((line, using), NOT_CACHED)
        if asked_at >= not_before:
            self._remember(line, using, not_before, asked_at + NO_WAITER_TTL)

    def note_waiter(self, line: str, using: str) -> None:
        """Note that there is a waiter: more will come, so the cache is off for two seconds."""
        self._remember(line, using, monotonic() + REMEMBERED_FOR, 0.0)

    def is_valid(self, line: str, using: str) -> bool:
        """Whether it is known that there are no waiters."""
        return self._known.get((line, using), NOT_CACHED)[1] > monotonic()

    def _remember(self, line: str, using: str, not_before: float, until: float) -> None:
        if len(self._known) >= MAX_REMEMBERED_LINES:
            self._known.clear()
        self._known[line, using] = not_before, until


class Throttle:
    """Limits how often this process does periodic work for a pool."""

    def __init__(self) -> None:
        self._done_at: dict[tuple[Model, str, str], float] = {}

    def is_due(self, action: str, model: Model, using: str, every: float) -> bool:
        """Whether the action was last due for this pool more than ``every`` seconds ago; if so, notes it as done."""
        key, now = (model, using, action), monotonic()
        due = now - self._done_at.get(key, -math.inf) > every
        if due:
            self._done_at[key] = now
        return due

    def return_due_rows(self, model: Model, using: str) -> None:
        """Return due rows to service; called when no row is free."""
        if self.is_due("revive", model, using, REVIVE_EVERY):
            model.return_due_rows(using)


class WaitEstimate:
    """Estimates when a ticket will be served, from the speed of its line in ticket numbers per second.

    All lines share one sequence of ticket numbers; that cancels out, because it affects speed and distance alike. Only
    an estimate: priorities and selectors change the order.
    """

    def __init__(self) -> None:
        self._speed: float | None = None
        self._start: tuple[int, float] | None = None  # (ticket, time it was served): start of the measurement
        self._last = (0, -math.inf)
        self._woken = 0.0  # share of recently served waiters that were woken before they polled
        self._waited = DEFAULT_WAIT  # average of recent waits in this process

    def served(self, ticket: int, now: float) -> None:
        """Note that this ticket was given a row."""
        start = self._start
        if start is None or now - self._last[1] > DISCARDED_AFTER:
            self._speed, self._start = None, (ticket, now)
        elif now - start[1] >= MEASURED_OVER and ticket > start[0]:
            measured = (ticket - start[0]) / (now - start[1])
            previous = measured if self._speed is None else self._speed
            self._speed = previous + (measured - previous) * (1 - math.exp((start[1] - now) / AVERAGED_OVER))
            self._start = ticket, now
        if ticket > self._last[0] or now - self._last[1] > DISCARDED_AFTER:
            self._last = ticket, now

    @property
    def per_second(self) -> float:
        """Tickets served per second; 0 while unknown."""
        return self._speed or 0.0

    @property
    def moved_at(self) -> float:
        """When this process last saw the line move."""
        return self._last[1]

    def note_wait(self, seconds: float) -> None:
        """Note how long a waiter of this process waited for its row."""
        self._waited += (seconds - self._waited) / 2

    def note_wakeup(self, was_woken: bool) -> None:
        """Note whether a served waiter was woken before it polled."""
        # Adapts within a few waits: where wake-ups are lost, rows idle while their waiters sleep.
        self._woken += (was_woken - self._woken) / 2

    @property
    def scan_probability(self) -> float:
        """The share of new callers that scan for free rows: all, unless the line is so fast that fewer suffice."""
        return min(1.0, MAX_SCANS_PER_SECOND / self._speed) if self._speed else 1.0

    def first_scan_delay(self, now: float) -> float:
        """Return the seconds from a waiter's first check to its first scan."""
        is_fast = self.scan_probability < 1.0 and now - self.moved_at < MEASURED_OVER
        return FAST_LINE_SCAN_DELAY if is_fast else FIRST_SCAN_DELAY

    def first_check_delay(self, ticket: int, now: float) -> float:
        """Return the seconds from taking this ticket to its first check."""
        number, at = self._last
        if self._speed is None or now - at > DISCARDED_AFTER:
            early = 0.0
        else:
            ahead = max(1.0, ticket - number - self._speed * (now - at))
            early = ahead / self._speed * (1 - ahead**-0.75)  # the estimate is less certain for near tickets
            # Wake up before the estimate, or a slow line would confirm itself: rows idle while waiters sleep.
            early = min(early, 0.06 + 0.6 * early)
            # Not longer than recent waits, for the same reason: in a line with few waiters the estimate is too long.
            early = min(early, self._waited)
            early += self._woken * (WAKEUP_GRACE[0] + WAKEUP_GRACE[1] * early)
        return max(MIN_FIRST_CHECK, min(early, MAX_FIRST_CHECK))


def pause(waited: float, *, near: bool | None, grant_seconds: float) -> float:
    """Return the seconds until the next check of a ticket.

    Args:
        waited: seconds so far.
        near: whether the ticket is among the first in line; None: unknown.
        grant_seconds: how long a row stays granted to the ticket; after that it is lost.
    """
    share, most = UNKNOWN if near is None else NEAR if near else FAR
    return min(max(MIN_CHECK_INTERVAL, share * waited), most, grant_seconds / 4)


def scan_interval(waited: float) -> float:
    """Return the seconds until the next scan for free rows; rare, because most rows are handed over instead."""
    least, share, most = SCAN_INTERVAL
    return min(max(least, share * waited), most)


def estimate_of(line: str, using: str) -> WaitEstimate:
    """Return the estimate for this line."""
    if (known := _speeds.get((line, using))) is not None:
        return known
    if len(_speeds) >= MAX_REMEMBERED_LINES:
        _speeds.clear()
    return _speeds.setdefault((line, using), WaitEstimate())


recent_waits = RecentWaits()  # requests that had to wait in line
recent_waiters = RecentWaits()  # releases that found a waiter
no_waiter_cache = NoWaiterCache()
throttle = Throttle()
_speeds: dict[tuple[str, str], WaitEstimate] = {}
