"""What this process learns about each line: whether callers have to wait, how fast the line moves, what was last done.

These are only estimates, to choose which of two ways to try first, and when to look. Each choice is correct.

Tickets are served in the order of their numbers, so two tickets that were served some time apart predict when another
will be. A waiter sleeps until shortly before that. Then it looks often, and less often the longer it has waited: being
late by a fiftieth of the wait does not matter.
"""

import math

from resourcepool.database.clock import monotonic
from resourcepool.leases.table import Model

MAX_REMEMBERED_LINES = 1_000  # remembered; a lock has a line of its own
REMEMBERED_FOR = 2.0  # seconds, like all times here: how long a wait is remembered
REVIVE_EVERY = 2.0
MIN_FIRST_CHECK = 0.004  # before the first look, while the speed is unknown
MIN_CHECK_INTERVAL = 0.004  # between looks, at least
MAX_FIRST_CHECK = 1.0  # of a first look
DEFAULT_WAIT = 0.06  # expected at most, while no wait is known
NEAR = (0.02, 0.2)  # (share of the wait, maximum) of a pause: for tickets among the first in line,
FAR = (0.1, 1.0)  # for the others,
UNKNOWN = (0.08, 0.2)  # and if the position is unknown
WAKEUP_GRACE = (
    0.01,
    0.3,
)  # (minimum, share of the wait) by which a first look is delayed where notices come in time
MEASURED_OVER = 0.2  # over which the speed is measured
DISCARDED_AFTER = 2.0  # after which an estimate is discarded
AVERAGED_OVER = 0.5  # a measurement over this time counts two thirds, the previous estimate one third
MAX_SCANS_PER_SECOND = 100.0  # per second, by all newcomers of a fast line, for rows that were left free
NO_WAITER_TTL = 0.05  # after the answer that nobody waits, in which a release does not ask
FIRST_SCAN_DELAY = (
    0.06  # from the first look at its ticket to a waiter's look at free rows, for those released unasked
)
FAST_LINE_SCAN_DELAY = 1.0  # in a fast line that has moved just now: there everybody asks
LAST_CHECK_BEFORE_TIMEOUT = (
    0.015  # before its time is up: a waiter with a short timeout looks then, if not sooner
)
SCAN_INTERVAL = (0.25, 0.2, 2.0)  # minimum, share of the wait, maximum between two looks at free rows

NOT_CACHED = (0.0, 0.0)


class RecentWaits:
    """Remembers for a moment that a caller had to wait.

    Attributes:
        until: {(line, database): when that is forgotten}. Empty where nobody waits, so look here before you ask.
    """

    def __init__(self) -> None:
        self.until: dict[tuple[str, str], float] = {}

    def note(self, line: str, using: str, *, had_to_wait: bool) -> None:
        """Note whether a caller has just had to wait."""
        if had_to_wait:
            if len(self.until) >= MAX_REMEMBERED_LINES:
                self.until.clear()
            self.until[line, using] = monotonic() + REMEMBERED_FOR
        else:
            self.until.pop((line, using), None)

    def is_likely(self, line: str, using: str, within: float = REMEMBERED_FOR) -> bool:
        """Tell whether the next caller is likely to wait, because one waited in the last ``within`` seconds."""
        return self.until.get((line, using), 0.0) > monotonic() + REMEMBERED_FOR - within


class NoWaiterCache:
    """Remembers for a moment that nobody waited, so that not every release has to ask.

    A waiter that came meanwhile finds the row by itself: it looks at free rows again as soon as everybody asks.
    """

    def __init__(self) -> None:
        # {(line, database): (not before, until) when releases do not ask}
        self._known: dict[tuple[str, str], tuple[float, float]] = {}

    def note_no_waiter(self, line: str, using: str, asked_at: float) -> None:
        """Note that nobody waited at this time, by this process's clock."""
        not_before, _ = self._known.get((line, using), NOT_CACHED)
        if asked_at >= not_before:
            self._remember(line, using, not_before, asked_at + NO_WAITER_TTL)

    def note_waiter(self, line: str, using: str) -> None:
        """Note that somebody waits: where that happens, it happens again."""
        self._remember(line, using, monotonic() + REMEMBERED_FOR, 0.0)

    def is_valid(self, line: str, using: str) -> bool:
        """Tell whether nobody waited just now, or for some time before."""
        return self._known.get((line, using), NOT_CACHED)[1] > monotonic()

    def _remember(self, line: str, using: str, not_before: float, until: float) -> None:
        if len(self._known) >= MAX_REMEMBERED_LINES:
            self._known.clear()
        self._known[line, using] = not_before, until


class Throttle:
    """When this process last did which upkeep for which pool."""

    def __init__(self) -> None:
        self._done_at: dict[tuple[Model, str, str], float] = {}

    def is_due(self, what: str, model: Model, using: str, every: float) -> bool:
        """Tell whether ``what`` has not been done for this pool for ``every`` seconds, and note it as done."""
        which, now = (model, using, what), monotonic()
        due = now - self._done_at.get(which, -math.inf) > every
        if due:
            self._done_at[which] = now
        return due

    def return_due_rows(self, model: Model, using: str) -> None:
        """Return rows to service whose time is over; for when nothing is free."""
        if self.is_due("revive", model, using, REVIVE_EVERY):
            model.return_due_rows(using)


class WaitEstimate:
    """Estimates how fast one line moves, in ticket numbers per second. Pure arithmetic: times are passed in.

    Tickets of other lines have numbers, too; they count in the speed as in the distance. Only an estimate: priorities
    and selectors change the order.
    """

    def __init__(self) -> None:
        self._speed: float | None = None
        self._from: tuple[int, float] | None = None  # (ticket, when it was served): measured from
        self._last = (0, -math.inf)
        self._told = 0.0  # share of recently served waiters that had a notice first
        self._waited = DEFAULT_WAIT  # the average of recent waits here

    def served(self, ticket: int, now: float) -> None:
        """Note that this ticket was given something."""
        begun = self._from
        if begun is None or now - self._last[1] > DISCARDED_AFTER:
            self._speed, self._from = None, (ticket, now)
        elif now - begun[1] >= MEASURED_OVER and ticket > begun[0]:
            fresh = (ticket - begun[0]) / (now - begun[1])
            known = fresh if self._speed is None else self._speed
            self._speed = known + (fresh - known) * (1 - math.exp((begun[1] - now) / AVERAGED_OVER))
            self._from = ticket, now
        if ticket > self._last[0] or now - self._last[1] > DISCARDED_AFTER:
            self._last = ticket, now

    @property
    def per_second(self) -> float:
        """How many tickets are served each second; 0 while that is unknown."""
        return self._speed or 0.0

    @property
    def moved_at(self) -> float:
        """When this process last saw the line move."""
        return self._last[1]

    def note_wait(self, seconds: float) -> None:
        """Note for how long a waiter of this process was not given anything."""
        self._waited += (seconds - self._waited) / 2

    def note_wakeup(self, by_notice: bool) -> None:
        """Note whether a served waiter had a notice before it looked by itself."""
        # Learned within a few waits: while notices fail to come, rows wait for sleeping waiters.
        self._told += (by_notice - self._told) / 2

    @property
    def scan_probability(self) -> float:
        """The share of newcomers that look at free rows: all of them, unless the line is so fast that fewer suffice."""
        return min(1.0, MAX_SCANS_PER_SECOND / self._speed) if self._speed else 1.0

    def first_scan_delay(self, now: float) -> float:
        """Return how many seconds after its first look at its ticket a waiter looks at free rows."""
        is_fast = self.scan_probability < 1.0 and now - self.moved_at < MEASURED_OVER
        return FAST_LINE_SCAN_DELAY if is_fast else FIRST_SCAN_DELAY

    def first_check_delay(self, ticket: int, now: float) -> float:
        """Return how many seconds after taking this ticket to look at it first."""
        number, at = self._last
        if self._speed is None or now - at > DISCARDED_AFTER:
            early = 0.0
        else:
            ahead = max(1.0, ticket - number - self._speed * (now - at))
            early = ahead / self._speed * (1 - ahead**-0.75)  # the nearer, the less certain
            # If all slept until a slow line gets there, it would stay slow: rows wait for sleeping waiters.
            early = min(early, 0.06 + 0.6 * early)
            # Where some wait now and then the line is faster than it seems. Were this more than recent waits, all would
            # wait longer for those who sleep too long, and then sleep longer themselves.
            early = min(early, self._waited)
            early += self._told * (WAKEUP_GRACE[0] + WAKEUP_GRACE[1] * early)
        return max(MIN_FIRST_CHECK, min(early, MAX_FIRST_CHECK))


def pause(waited: float, *, near: bool | None, grant_seconds: float) -> float:
    """Return how many seconds later to look again.

    Args:
        waited: for how many seconds so far.
        near: whether it is among the first in line; None: unknown.
        lasts: for how many seconds a row that is given stays there to be seen.
    """
    share, most = UNKNOWN if near is None else NEAR if near else FAR
    return min(max(MIN_CHECK_INTERVAL, share * waited), most, grant_seconds / 4)


def scan_interval(waited: float) -> float:
    """Return how many seconds later to look at free rows again: most free rows are handed over instead."""
    least, share, most = SCAN_INTERVAL
    return min(max(least, share * waited), most)


def estimate_of(line: str, using: str) -> WaitEstimate:
    """Return the estimate for this line."""
    if (known := _speeds.get((line, using))) is not None:
        return known
    if len(_speeds) >= MAX_REMEMBERED_LINES:
        _speeds.clear()
    return _speeds.setdefault((line, using), WaitEstimate())


recent_waits = RecentWaits()  # whether a request had to wait in line
recent_waiters = RecentWaits()  # whether a release found a waiter in line
no_waiter_cache = NoWaiterCache()  # whether a release need not ask
throttle = Throttle()
_speeds: dict[tuple[str, str], WaitEstimate] = {}
