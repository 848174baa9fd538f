"""Whether tasks were handed out in order: only tasks locked by another process at that moment may be skipped.

What is known of a task for certain is that it was ready from the beginning until the call by which it was assigned for
the first time, under the first fence. While it is, an assignment may pass it over only if another one has it locked,
which has up to ``MOST`` each.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.concurrency.evidence import Event
from tests.taskqueue.dispenser.proof.terms import MOST, TWINS, is_moving

LINGERS = 1.0  # seconds in which the server notices that a client is dead


class MustWait(NamedTuple):
    """A task at its place in the order, and its fence while it has never been assigned."""

    key: int
    fence: int


class Call(NamedTuple):
    """A call that assigned tasks; ``last``: the place of the last task that it got for the first time."""

    began: float
    ended: float
    who: int
    last: int


def skipped(events: Sequence[Event], order: Sequence[MustWait]) -> Iterator[str]:
    """Say which calls passed over more tasks than the calls beside them may have had locked."""
    first = {(one.key, one.fence + 1): place for place, one in enumerate(order) if not is_moving(one.key)}
    calls, asked_for = _calls(events, first)
    busy = _in_flight(events)
    ready = Counts(len(order))
    for place in asked_for:
        ready.add(place, 1)
    leaves = sorted((began, place) for place, began in asked_for.items())
    gone = 0
    for call in sorted(calls, key=lambda call: call.ended):
        while gone < len(leaves) and leaves[gone][0] <= call.ended:
            ready.add(leaves[gone][1], -1)
            gone += 1
        passed_over = ready.before(call.last)
        if not passed_over:
            continue
        beside = sum(who != call.who and a < call.ended and b > call.began for who, a, b in busy)
        if passed_over > beside * MOST:
            yield f"worker {call.who} at {call.ended:.3f}: {passed_over} passed over, {beside} calls beside it"


def _calls(events: Sequence[Event], first: dict[tuple[int, int], int]) -> tuple[list[Call], dict[int, float]]:
    """Return the calls that got tasks for the first time, and {place: when the call began that got it}."""
    calls: list[Call] = []
    asked_for: dict[int, float] = {}
    seen: set[tuple[int, int]] = set()
    for event in events:
        if event.what != "told":
            continue
        name, *tasks = event.text.split()
        pairs = [(int(key), int(fence)) for key, _, fence in (task.partition(":") for task in tasks)]
        places = [first[one] for one in pairs if one in first and one not in seen]
        seen.update(pairs)
        if places:
            calls.append(Call(event.since, event.at, event.pid, max(places)))
            if name != TWINS:  # the tasks of a killed twin are reported by the next one
                asked_for |= dict.fromkeys(places, event.since)
    return calls, asked_for


def _in_flight(events: Sequence[Event]) -> list[tuple[int, float, float]]:
    """Return (worker, from, until) of all calls, also of calls without an answer."""
    busy: list[tuple[int, float, float]] = []
    began: dict[int, float] = {}
    for event in events:
        if event.what == "asked":
            began[event.pid] = event.at
        elif event.what in ("told", "killed") and event.pid in began:
            lasts = LINGERS if event.what == "killed" else 0
            busy.append((event.pid, began.pop(event.pid), event.at + lasts))
    return busy + [(who, at, float("inf")) for who, at in began.items()]


class Counts:
    """How many there are before a place (a Fenwick tree)."""

    def __init__(self, size: int) -> None:
        self._sums = [0] * (size + 1)

    def add(self, place: int, number: int) -> None:
        place += 1
        while place < len(self._sums):
            self._sums[place] += number
            place += place & -place

    def before(self, place: int) -> int:
        found = 0
        while place:
            found += self._sums[place]
            place -= place & -place
        return found
