"""What the promises of timers say about the evidence of a run."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tests.concurrency.evidence import Event
from tests.proof.findings import Findings
from tests.taskqueue.proof.judge import Written, late, lost

LOST, EARLY, TWICE, LATE = (
    "timer lost",
    "begun early",
    "begun again without a cause",
    "late write behind the guard",
)
UNEXPECTED = "unexpected error"
KINDS = (LOST, EARLY, TWICE, LATE, UNEXPECTED)


def examine(events: Iterable[Event], written: Sequence[Written], timers: int, done: int) -> Findings:
    """Judge a run of so many timers, of which so many are done."""
    ordered = sorted(events)
    found = Findings({kind: [] for kind in KINDS})
    began = [event for event in ordered if event.what == "began"]
    found.violations[LOST] += lost(written, timers, done)
    found.violations[EARLY] += [f"timer {one.pk}: {one.since:g} s" for one in began if one.since < 0]
    found.violations[TWICE] += _twice(ordered)
    found.violations[LATE] += late(written)
    found.violations[UNEXPECTED] += [event.text for event in ordered if event.what == "unexpected"]
    words = ("killed", "stopped", "restarted", "failed")
    counts = {word: sum(event.what == word for event in ordered) for word in words}
    found.figures |= {
        "timers": timers,
        "done": done,
        "begun again": len(began) - len({one.pk for one in began}),
    }
    found.figures |= {**counts, "writes behind the guard": len(written)}
    return found


def _twice(events: Sequence[Event]) -> Iterable[str]:
    """A timer is begun again only after its node was killed or stopped, its handler failed, or an outage."""
    excused = {event.pid for event in events if event.what in ("killed", "stopped")}
    restarts = [event.at for event in events if event.what == "restarted"]
    attempts: dict[int, list[Event]] = defaultdict(list)
    # By fence: a suspended node may log late that it began before another one.
    for event in sorted(events, key=lambda event: (event.fence, event.at)):
        if event.what == "began":
            before = attempts[event.pk]
            if before and not (event.text and _has_cause(before[-1], event, excused, restarts)):
                yield f"timer {event.pk}: previous end {event.text!r}, after {before[-1].what} by {before[-1].pid}"
        if event.what in ("began", "ended", "failed"):
            attempts[event.pk].append(event)


def _has_cause(last: Event, again: Event, excused: set[int], restarts: Sequence[float]) -> bool:
    return last.what == "failed" or last.pid in excused or any(last.at - 10 < at < again.at for at in restarts)
