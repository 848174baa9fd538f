"""How soon a dead holder's row was leased again, and whether that was soon enough."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tests.chaos.story import BACK, Span, Story
from tests.chaos.terms import TICKET_TTL
from tests.concurrency.judge import OrphanedRow, Use

SLACK = 0.5  # seconds after the ttl in which it is taken again
CROWDED = 2.0  # seconds more at most, when rows that were given back lay as long: the machine cannot serve them sooner


class Lying:
    """How long rows lay that were given back: what a row can expect when nobody has died."""

    def __init__(self, idle: Sequence[tuple[float, float]]) -> None:
        self._idle = idle

    def during(self, span: Span) -> float:
        """Return the median of those that lay at some moment of ``span``, in seconds; 0 when none did."""
        end = bisect_left(self._idle, (span.end, 0.0))
        begin = bisect_left(self._idle, (span.start - 10 * CROWDED, 0.0))  # longer ones do not matter
        return median([to - since for since, to in self._idle[begin:end] if to > span.start] or [0.0])


@dataclass(frozen=True)
class Takeover:
    """A killed holder's row, and when somebody had it again.

    ``is_undisturbed``: nothing excuses a delay. ``is_slow``: had later than promised. ``is_late``: and later than rows
    are had at that time that were given back.
    """

    row: OrphanedRow
    expiry: float
    taken_at: float
    is_undisturbed: bool
    is_slow: bool
    is_late: bool

    @classmethod
    def of(cls, row: OrphanedRow, story: Story, ttl: float, lying: "Lying") -> "Takeover":
        expiry = row.killed_at + (max(ttl, TICKET_TTL) if _asked_for_many(row.use, story) else ttl)
        taken_at = min(row.next.start if row.next else story.ending, story.ending)
        span, fair = Span(expiry, taken_at), expiry + SLACK
        due = fair + _unseen(row, story) * (max(ttl, TICKET_TTL) + SLACK) + _held_up(row, story, span)
        due += _collected(row, story, span)
        for outage in story.outages:
            if outage.start < due and outage.end + BACK > expiry:
                due = max(due, outage.end + BACK + SLACK)
        is_slow = taken_at > due and story.waited(span) > SLACK
        is_late = is_slow and taken_at > due + min(CROWDED, lying.during(span))
        return cls(row, expiry, taken_at, due == fair and row.next is not None, is_slow, is_late)

    def __str__(self) -> str:
        after = f"taken {self.taken_at - self.row.killed_at:.2f} s after the kill"
        return f"{self.row.use}: {after if self.row.next else 'never ' + after}"


def _unseen(row: OrphanedRow, story: Story) -> int:
    """How many grants there may have been in between whose holders could not tell of them: each may have to lapse.

    A waiter that was killed has what it was handed for as long as its ticket lives.
    """
    fence = row.next.fence - 1 if row.next else story.fences.get(row.use.pk, 0)
    return max(0, fence - row.use.fence)


def _collected(row: OrphanedRow, story: Story, span: Span) -> float:
    """For how long the one who took it may have had it already, and waited for others that it wanted with it."""
    if row.next is None or not _asked_for_many(row.next, story):
        return 0.0
    return Span(row.next.asked_at, row.next.start).within(span)


def _asked_for_many(use: Use, story: Story) -> bool:
    """Tell whether it came with others: then it lasts as long as a ticket at first."""
    return story.asked_for_many(use.pid, use.asked_at, use.start)


def _held_up(row: OrphanedRow, story: Story, span: Span) -> float:
    """For how long the machine, the one who took it, or a stopped one with several rows locked were in the way."""
    seconds = story.stalled(span)
    for number, life in story.lives.items():
        for stop in life.stops:
            if stop.had_locks or (row.next and number == row.next.pid):
                seconds += stop.span.within(span)
    return seconds
