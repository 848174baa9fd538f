"""The checker of a run: finds every broken promise in the evidence and in the remaining rows of the database."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.figures import counted, thrown
from tests.chaos.remains import Remains
from tests.chaos.story import BACK, Span, Story
from tests.chaos.takeover import Lying, Takeover
from tests.concurrency.evidence import Event
from tests.concurrency.judge import Verdict, judge
from tests.proof.findings import Findings

THREADS = 6  # a worker's own, the keeper's two, the waiters'; one or two that tell of a loss
SESSIONS = 3  # a worker's own, the background thread's, the waiters'

KINDS = (
    "two holders at once",
    "fence not higher than before",
    "grant forgotten by the server",
    "late write behind the guard",
    "write lost",
    "dead holder's row left lying",
    "not working again in time",
    "session, thread, lease or ticket left behind",
    "deadlock or lock wait seen by a caller",
    "undocumented error seen by a caller",
    "worker gone by itself",
    "evidence that makes no sense",
)

# What comes late on a machine that is busy with something else, too; ``make chaos`` wants one to itself.
TIMED = ("dead holder's row left lying", "not working again in time")


def examine(events: Sequence[Event], remains: Remains, ttl: float) -> Findings:
    """Return what the evidence and the remains show."""
    findings, story = Findings({kind: [] for kind in KINDS}), Story(events)
    broken = findings.violations
    try:
        verdict = judge(story.events)
    except ValueError as error:
        verdict = Verdict()
        broken["evidence that makes no sense"].append(str(error))
    broken["two holders at once"] += verdict.overlaps
    broken["fence not higher than before"] += verdict.unfenced
    broken["grant forgotten by the server"] += forgotten(story.events)
    broken["late write behind the guard"] += late_writes(remains)
    broken["write lost"] += lost_writes(story.events, remains)
    broken["deadlock or lock wait seen by a caller"] += story.texts("deadlock")
    broken["undocumented error seen by a caller"] += story.texts("unexpected")
    broken["worker gone by itself"] += [*story.texts("vanished"), *story.texts("stayed")]
    broken["session, thread, lease or ticket left behind"] += left_behind(story, remains)
    lying = Lying(verdict.idle)
    takeovers = [Takeover.of(row, story, ttl, lying) for row in verdict.orphaned]
    broken["dead holder's row left lying"] += [str(one) for one in takeovers if one.is_late]
    for outage in story.outages:
        broken["not working again in time"] += not_back(story, outage)
    findings.figures = {**thrown(story), **counted(story, verdict, takeovers)}
    return findings


def forgotten(events: Sequence[Event]) -> Iterator[str]:
    """Rows whose fence in the database is lower than one that had been granted before anybody looked."""
    highest: dict[int, int] = defaultdict(int)
    for event in events:
        if event.what == "acquired":
            highest[event.pk] = max(highest[event.pk], event.fence)
        elif event.what == "found" and event.fence < highest[event.pk]:
            yield f"row {event.pk} has fence {event.fence} at {event.at:.3f}; {highest[event.pk]} had been granted"


def late_writes(remains: Remains) -> Iterator[str]:
    """Writes over a higher fence, and breaks in the chain of writes."""
    last: dict[int, int] = defaultdict(int)
    for page, before, fence, mark in remains.steps:
        if fence < before:
            yield f"page {page}: fence {fence} wrote over fence {before} ({mark})"
        elif before != last[page]:
            yield f"page {page}: fence {fence} found {before}, the write before it left {last[page]} ({mark})"
        last[page] = fence
    for page, fence in remains.pages.items():
        if fence != last[page]:
            yield f"page {page} has fence {fence}, its last write left {last[page]}"


def lost_writes(events: Sequence[Event], remains: Remains) -> Iterator[str]:
    """Writes that were reported as committed and are not there."""
    kept = {mark for *_, mark in remains.steps}
    for event in events:
        if event.what == "wrote" and event.text not in kept:
            yield f"page {event.pk}, fence {event.fence}, written at {event.at:.3f} ({event.text})"


def left_behind(story: Story, remains: Remains) -> Iterator[str]:
    for event in story.events:
        if event.what == "left" and int(event.text) > THREADS:
            yield f"worker {event.pid} had {event.text} threads"
    living = sum(life.end >= story.ending for life in story.lives.values())
    if remains.connected > living * SESSIONS + 1:
        yield f"{remains.connected} sessions for {living} workers"
    if remains.connected_after > 1:
        yield f"{remains.connected_after - 1} sessions after everybody had left"
    if remains.taken:
        yield f"rows {remains.taken} taken after everybody had left"
    if remains.waiting:
        yield f"{remains.waiting} tickets alive after everybody had left"


def not_back(story: Story, outage: Span) -> Iterator[str]:
    """Workers that could run all the time and did not get on in the seconds after the server came back.

    Whoever stands in line gets on as the line does: nobody who came later may have been served before.
    """
    window = Span(outage.end, outage.end + BACK + story.stalled(Span(outage.end, outage.end + BACK)))
    is_cut_short = any(other.start > outage.end and other.within(window) for other in story.outages)
    if window.end > story.ending or is_cut_short:
        return
    able = [number for number, life in story.lives.items() if life.could_run(window)]
    if able and not any(e.what == "acquired" and window.start < e.at < window.end for e in story.events):
        yield f"nobody was granted anything within {BACK:g} s after {outage.end:.3f}"
        return
    for number in able:
        if story.lives[number].first_sign(window) is None and story.was_passed(number, window):
            yield f"worker {number} not within {BACK:g} s after {outage.end:.3f}"
