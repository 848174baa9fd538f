"""The judge of the queues: finds every broken promise in the evidence."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from tests.chaos.judge import late_writes, lost_writes
from tests.chaos.story import Span, Story
from tests.concurrency.evidence import Event
from tests.concurrency.judge import judge
from tests.proof.findings import Findings
from tests.queues.proof.evidence import Change, Evidence
from tests.queues.proof.terms import HANDED_OVER, JUDGE_DEAD, UNWORKED

# On a busy machine these say nothing about the package.
BY_THE_CLOCK = (
    "queue unworked for too long",
    "work in hand lost its queue",
    "more moves than needed",
    "not settled in time",
)
KINDS = (
    "two servers at once",
    "fence not higher than before",
    "late write behind the guard",
    "write lost",
    *BY_THE_CLOCK,
    "deadlock or lock wait seen by a caller",
    "undocumented error seen by a caller",
    "server gone by itself",
    "something left behind",
    "evidence that makes no sense",
)
MORE = 1  # tolerated moves above the least number
HELD_UP = 4.5  # maximum seconds for which the relay delays a statement
ROUND = 0.4  # usual seconds between two pieces of work on a queue; more means that the machine is crowded
CROWDED = 3.0  # maximum seconds that this excuses


def examine(events: Sequence[Event], evidence: Evidence) -> Findings:
    """Return the findings from the log and the rest of the evidence."""
    findings, story = Findings({kind: [] for kind in KINDS}), Story(events)
    broken = findings.violations
    try:
        verdict = judge(story.events)
        broken["two servers at once"] += verdict.overlaps
        broken["fence not higher than before"] += verdict.unfenced
    except ValueError as error:
        broken["evidence that makes no sense"].append(str(error))
    broken["late write behind the guard"] += late_writes(evidence.writes)
    broken["write lost"] += lost_writes(story.events, evidence.writes)
    uses = Uses(story)
    broken["queue unworked for too long"] += uses.unworked()
    broken["work in hand lost its queue"] += cut_off(story, uses)
    broken["more moves than needed"] += needless(evidence.changes)
    broken["not settled in time"] += [change.name for change in evidence.changes if not change.is_settled]
    broken["deadlock or lock wait seen by a caller"] += story.texts("deadlock")
    broken["undocumented error seen by a caller"] += story.texts("unexpected")
    broken["server gone by itself"] += [*story.texts("vanished"), *story.texts("stayed")]
    broken["something left behind"] += evidence.left
    findings.figures = figures(story, uses, evidence)
    return findings


class Uses:
    """The times of work on each queue, and how long it may be left alone."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._begin = next((event.at for event in story.events if event.what == "begin"), 0.0)
        moments: dict[int, list[float]] = defaultdict(list)
        for event in story.events:
            if event.what in ("acquired", "using") and event.at >= self._begin:
                moments[event.pk].append(event.at)
        self.gaps = sorted(
            (Span(start, end), pk)
            for pk, found in moments.items()
            for start, end in pairwise([self._begin, *found, max(story.ending, found[-1])])
        )
        self._excuses = [Span(outage.start, outage.end + UNWORKED) for outage in story.outages]
        self._excuses += [Span(e.at, e.at + HELD_UP) for e in story.events if e.what == "held_up"]
        self._excuses += [stop.span for life in story.lives.values() for stop in life.stops if stop.had_locks]
        self._ends = sorted((gap.end, gap.end - gap.start) for gap, _ in self.gaps)
        self._deaths = sorted(e.at for e in story.events if e.what in ("killed", "stopped"))
        self._moves = sorted(e.at for e in story.events if e.what in ("started", "left"))

    def unworked(self) -> Iterator[str]:
        """Yield the times without work on a queue that nothing excuses."""
        for gap, pk in self.gaps:
            lasted = gap.end - gap.start
            if lasted > UNWORKED and lasted > (allowed := self.allowed(gap)):
                yield f"queue {pk} from {gap.start:.3f} for {lasted:.3f} s; {allowed:.3f} s are excused"

    def longest(self) -> float:
        """Return the longest time without work on a queue that at most one crash excuses."""
        by_length = sorted((gap for gap, _ in self.gaps), key=lambda gap: gap.start - gap.end)
        return next((gap.end - gap.start for gap in by_length if self.allowed(gap) <= UNWORKED), 0.0)

    def allowed(self, gap: Span) -> float:
        """Return for how many seconds a queue may be left alone in this time.

        Once per crash, as the next owner may crash, too, also the next owner after a leave or a join, before its check.
        Other excuses: outages of the database with the same time after each, a delayed statement, a server stopped with
        a row locked, and a crowded machine.
        """
        deaths, moves = _within(self._deaths, gap), _within(self._moves, gap)
        handing_over = HANDED_OVER * moves if deaths else 0.0
        return UNWORKED * max(1, deaths) + handing_over + self.excused(gap)

    def excused(self, gap: Span) -> float:
        return sum(span.within(gap) for span in self._excuses) + self._story.stalled(gap) + self.crowding(gap)

    def crowding(self, gap: Span) -> float:
        """Return by how much all work was slower than usual in this time and just after it."""
        first, last = (bisect_left(self._ends, (moment, 0.0)) for moment in (gap.start, gap.end + 1.0))
        around = [lasted for _, lasted in self._ends[first:last] if lasted < UNWORKED]
        slower = median(around) - ROUND if around else 0.0
        return min(CROWDED, max(0.0, 3 * slower))


def _within(moments: list[float], span: Span) -> int:
    return bisect_right(moments, span.end) - bisect_left(moments, span.start)


def cut_off(story: Story, uses: Uses) -> Iterator[str]:
    """Pieces of work that lost their queue in the middle, without an excuse.

    Excuses: a server that was stopped, until ``judge_dead_after`` after it continued; an outage, and the same time
    after it; a delayed statement; a machine on which a heartbeat came too late.
    """
    for event in story.events:
        if event.what != "cut_off":
            continue
        work = Span(event.since - JUDGE_DEAD, event.at)
        life = story.lives.get(event.pid)
        stops = [Span(stop.span.start, stop.span.end + JUDGE_DEAD) for stop in life.stops] if life else []
        if not any(stop.within(work) for stop in stops) and not uses.excused(work):
            yield f"server {event.pid} from {event.since:.3f} to {event.at:.3f}: {event.text}"


def needless(changes: Sequence[Change]) -> Iterator[str]:
    """Changes with more moves than necessary."""
    for change in changes:
        if change.after and change.is_settled and change.moved > change.least + MORE:
            yield str(change)


def figures(story: Story, uses: Uses, evidence: Evidence) -> dict[str, float | int | str]:
    """Return the figures of the run; durations in seconds."""
    counts = story.counts
    found: dict[str, float | int | str] = {
        "servers started": counts["started"],
        "killed": counts["killed"],
        "stopped": counts["stopped"],
        "restarts of the database": len(story.outages),
        "connections cut": counts["cut"],
        "replies lost": counts["reply_lost"],
        "statements held up": counts["held_up"],
        "pieces of work": (counts["acquired"] + counts["using"]) // 2,
        "stays of a queue with a server": counts["acquired"],
        "guarded writes": counts["wrote"],
        "guarded writes refused": counts["refused"],
        "pieces of work cut off, with an excuse": counts["cut_off"],
        "longest a queue was unworked, without more excuse than one death": round(uses.longest(), 2),
        "moments the machine was too busy for us": len(story.stalls),
    }
    for name in dict.fromkeys(change.name for change in evidence.changes):
        some = [change for change in evidence.changes if change.name == name]
        settled = f"settled after {min(c.seconds for c in some):.1f}-{max(c.seconds for c in some):.1f} s"
        found[f"{name} ({len(some)})"] = f"{settled}; moved / fewest: " + ", ".join(
            f"{change.moved}/{change.least}" for change in some[:10]
        )
    return found
