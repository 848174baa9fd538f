"""What the promises of a dispenser say about the evidence of a run."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.concurrency.evidence import Event
from tests.proof.findings import Findings
from tests.taskqueue.dispenser.proof.order import MustWait, skipped

LOST, TWICE, NOBODYS = "task lost", "done twice", "done without having been assigned"
SHARED, OVER, ORDER = "one assignment to two workers", "bucket over its limit", "a lower score passed over"
UNEXPECTED = "unexpected error"
KINDS = (LOST, TWICE, NOBODYS, SHARED, OVER, ORDER, UNEXPECTED)
COUNTED = ("killed", "stopped", "restarted", "cut", "reply_lost", "rebuilt", "looked", "unavailable")


class Row(NamedTuple):
    """A task in the database."""

    key: int
    pk: int
    state: str
    fence: int


class Assignment(NamedTuple):
    """A task as a worker got it."""

    key: int
    fence: int


def examine(
    events: Iterable[Event], before: Sequence[Row], after: Iterable[Row], steps: Sequence[Assignment]
) -> Findings:
    """Judge a run.

    Args:
        before: the tasks at the beginning, in the order in which they are to be handed out.
        after: all tasks at the end.
        steps: what workers wrote in the transactions in which they finished tasks.
    """
    ordered = sorted(events)
    rows = {row.key: row for row in after}
    names, done = _named(ordered, "told"), _named(ordered, "done")
    found = Findings({kind: [] for kind in KINDS})
    found.violations[LOST] += _lost(before, rows)
    found.violations[TWICE] += _twice(done, steps, rows)
    found.violations[NOBODYS] += _nobodys(names, rows)
    found.violations[SHARED] += [
        f"task {one.key} under fence {one.fence}: {', '.join(sorted(who))}"
        for one, who in names.items()
        if len(who) > 1
    ]
    found.violations[OVER] += _over(ordered)
    found.violations[ORDER] += skipped(ordered, [MustWait(row.key, row.fence) for row in before])
    found.violations[UNEXPECTED] += [event.text for event in ordered if event.what == "unexpected"]
    fences: dict[int, set[int]] = defaultdict(set)
    for one in names:
        fences[one.key].add(one.fence)
    found.figures |= {
        "tasks": len(before),
        "done": sum(row.key in rows and rows[row.key].state == "done" for row in before),
        "assigned again": sum(len(of) - 1 for of in fences.values()),
        "told stale": sum(event.fence for event in ordered if event.what == "done"),
        "retired by rebuilds": sum(event.pk for event in ordered if event.what == "rebuilt"),
    }
    found.figures |= {word: sum(event.what == word for event in ordered) for word in COUNTED}
    return found


def assignments(event: Event) -> tuple[str, list[Assignment]]:
    """Return the worker and its tasks."""
    name, *tasks = event.text.split()
    pairs = [task.split(":") for task in tasks]
    return name, [Assignment(int(key), int(fence)) for key, fence in pairs]


def _named(events: Iterable[Event], what: str) -> Mapping[Assignment, set[str]]:
    found: dict[Assignment, set[str]] = defaultdict(set)
    for event in events:
        if event.what == what:
            name, tasks = assignments(event)
            for one in tasks:
                found[one].add(name)
    return found


def _lost(before: Iterable[Row], after: Mapping[int, Row]) -> Iterator[str]:
    for row in before:
        last = after.get(row.key)
        if last is None:
            yield f"task {row.key} is gone"
        elif last.pk != row.pk:
            yield f"task {row.key} was gone, and was added again by a rebuild"
        elif last.state != "done":
            yield f"task {row.key} is {last.state}"


def _twice(done: Iterable[Assignment], steps: Iterable[Assignment], after: Mapping[int, Row]) -> Iterator[str]:
    fences: dict[int, set[int]] = defaultdict(set)
    written: dict[int, int] = defaultdict(int)
    for one in done:
        fences[one.key].add(one.fence)
    for one in steps:
        fences[one.key].add(one.fence)
        written[one.key] += 1
    for key, those in fences.items():
        if len(those) > 1:
            yield f"task {key}: under fences {sorted(those)}"
        elif key not in after or (after[key].state, after[key].fence - 1) != ("done", *those):
            yield f"task {key}: under fence {min(those)}, and the database does not know"
    yield from (f"task {key} has written {count} times" for key, count in written.items() if count > 1)


def _nobodys(told: Mapping[Assignment, set[str]], after: Mapping[int, Row]) -> Iterator[str]:
    for row in after.values():
        if row.state == "done" and Assignment(row.key, row.fence - 1) not in told:
            yield f"task {row.key} under fence {row.fence - 1}"


def _over(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if event.what == "holds" and event.fence > int(event.text):
            yield f"bucket {event.pk} at {event.at:.3f}: {event.fence} of {event.text}, inside a transaction"
        elif event.what == "over":
            yield f"bucket {event.pk} at {event.at:.3f}: {event.fence}, seen from outside"
        elif event.what == "told" and len(assignments(event)[1]) > event.fence:
            yield f"{event.text.split()[0]} at {event.at:.3f}: more than {event.fence}"
