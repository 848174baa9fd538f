"""How soon a dead holder's row was had by somebody else, and whether that was soon enough."""

from dataclasses import dataclass

from tests.chaos.story import BACK, Span, Story
from tests.concurrency.judge import Bereft

SLACK = 0.5  # seconds after the ttl in which it is taken again


@dataclass(frozen=True)
class Takeover:
    """A killed holder's row, when somebody had to have it again, and when somebody had."""

    row: Bereft
    expiry: float
    deadline: float
    taken_at: float
    is_undisturbed: bool
    is_late: bool

    @classmethod
    def of(cls, row: Bereft, story: Story, ttl: float) -> "Takeover":
        expiry = row.killed_at + ttl
        taken_at = min(row.next.start if row.next else story.ending, story.ending)
        fair = expiry + SLACK
        deadline = fair + _unseen(row) * (ttl + SLACK) + _held_up(row, story, Span(expiry, taken_at))
        for outage in story.outages:
            if outage.start < deadline and outage.end + BACK > expiry:
                deadline = max(deadline, outage.end + BACK + SLACK)
        is_late = taken_at > deadline and story.waited(Span(expiry, taken_at)) > SLACK
        return cls(row, expiry, deadline, taken_at, deadline == fair and row.next is not None, is_late)

    def __str__(self) -> str:
        after = f"taken {self.taken_at - self.row.killed_at:.2f} s after the kill"
        return f"{self.row.use}: {after if self.row.next else 'never ' + after}"


def _unseen(row: Bereft) -> int:
    """How many grants there may have been in between whose holders could not tell of them: each may have to lapse."""
    return max(0, row.next.fence - row.use.fence - 1) if row.next else 0


def _held_up(row: Bereft, story: Story, span: Span) -> float:
    """For how long the machine, the one who took it, or a stopped one with several rows locked were in the way."""
    seconds = story.stalled(span)
    for number, life in story.lives.items():
        for stop in life.stops:
            if stop.had_locks or (row.next and number == row.next.pid):
                seconds += stop.span.within(span)
    return seconds
