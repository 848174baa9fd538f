"""What the promises of a stream say about the evidence of a run."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.concurrency.evidence import Event
from tests.proof.findings import Findings

LOST, TWICE, ORDER, LATE = (
    "task lost",
    "run twice in one term",
    "out of order in a lane",
    "late write behind the guard",
)
LEADERS, UNEXPECTED = "two leaders at once", "unexpected error"
KINDS = (LOST, TWICE, ORDER, LATE, LEADERS, UNEXPECTED)


@dataclass(frozen=True)
class Written:
    """One write behind ``guard``, in the order of the table: of which task, in which lane, under which fence."""

    lane: int
    number: int
    fence: int


def examine(events: Iterable[Event], written: Sequence[Written], tasks: int, done: int) -> Findings:
    """Judge a run of so many tasks, of which so many are done."""
    ordered = sorted(events)
    found = Findings({kind: [] for kind in KINDS})
    broken = found.violations
    broken[LOST] += lost(written, tasks, done)
    broken[TWICE] += _twice(ordered)
    broken[ORDER] += _out_of_order(written)
    broken[LATE] += late(written)
    broken[LEADERS] += _two_leaders(ordered)
    broken[UNEXPECTED] += [event.text for event in ordered if event.what == "unexpected"]
    terms = {event.text for event in ordered if event.what == "began"}
    again = sum(event.what == "began" for event in ordered) - len({e.pk for e in ordered if e.what == "began"})
    killed = sum(event.what == "killed" for event in ordered)
    stopped = sum(event.what == "stopped" for event in ordered)
    found.figures |= {"tasks": tasks, "done": done, "terms": len(terms), "begun again": again}
    restarts = sum(event.what == "broker_killed" for event in ordered)
    found.figures |= {"broker restarted": restarts}
    found.figures |= {"killed": killed, "stopped": stopped, "writes behind the guard": len(written)}
    return found


def lost(written: Sequence[Written], tasks: int, done: int) -> Iterable[str]:
    if done != tasks:
        yield f"{tasks - done} of {tasks} are not done"
    missing = set(range(tasks)) - {write.number for write in written}
    if missing:
        yield f"{len(missing)} are done and have written nothing, such as {min(missing)}"


def _twice(events: Sequence[Event]) -> Iterable[str]:
    running: set[tuple[int, str]] = set()
    for event in events:
        which = (event.pk, event.text)
        if event.what == "failed":
            running.discard(which)
        elif event.what == "began":
            if which in running:
                yield f"task {event.pk} in term {event.text} at {event.at:.3f}"
            running.add(which)


def _out_of_order(written: Sequence[Written]) -> Iterable[str]:
    last: dict[int, int] = defaultdict(lambda: -1)
    for write in written:
        if write.number < last[write.lane]:
            yield f"task {write.number} wrote after task {last[write.lane]} of lane {write.lane}"
        last[write.lane] = max(last[write.lane], write.number)


def late(written: Sequence[Written]) -> Iterable[str]:
    highest: dict[int, int] = defaultdict(int)
    for write in written:
        if write.fence < highest[write.number]:
            yield f"task {write.number}: fence {write.fence} after {highest[write.number]}"
        highest[write.number] = max(highest[write.number], write.fence)


def _two_leaders(events: Sequence[Event]) -> Iterable[str]:
    latest = 0
    for event in events:
        if event.what in ("began", "wrote"):
            term = int(event.text)
            if term < latest:
                yield f"term {term} at {event.at:.3f}, after term {latest}"
            latest = max(latest, term)
