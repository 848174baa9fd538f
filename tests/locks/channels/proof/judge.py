"""What the promises of channels say about the evidence of a run."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.concurrency.evidence import Event
from tests.locks.channels.proof.terms import NAMES
from tests.proof.findings import Findings

ORDER, GAP, LOST, TWICE, UNSAID, UNEXPECTED = (
    "two orders",
    "a listener passed over messages",
    "lost for a durable subscription",
    "an effect together with done() more than once",
    "published, and not there",
    "unexpected error",
)
KINDS = (ORDER, GAP, LOST, TWICE, UNSAID, UNEXPECTED)


class Kept(NamedTuple):
    """A message as the database has it in the end."""

    number: int
    who: int
    sequence: int


class Effect(NamedTuple):
    """What a reader wrote in one transaction with ``done()``, in the order of the table."""

    name: str
    number: int


def examine(events: Iterable[Event], kept: Sequence[Kept], effects: Sequence[Effect]) -> Findings:
    """Judge a run."""
    ordered = sorted(events)
    found = Findings({kind: [] for kind in KINDS})
    broken = found.violations
    broken[ORDER] += _orders(ordered, kept)
    broken[GAP] += _gaps(ordered)
    broken[LOST] += _lost(ordered, kept, effects)
    broken[TWICE] += _twice(effects)
    broken[UNSAID] += _unsaid(ordered, kept)
    broken[UNEXPECTED] += [event.text for event in ordered if event.what == "unexpected"]
    counted = Counter(event.what for event in ordered)
    read = sum(counted[name] for name in NAMES)
    found.figures |= {word: counted[word] for word in ("killed", "stopped", "restarted", "unknown", "heard")}
    found.figures |= {"messages": len(kept), "read under a name": read, "read again": read - len(effects)}
    return found


def _orders(events: Sequence[Event], kept: Sequence[Kept]) -> Iterable[str]:
    """All see the same message under the same number, and a publisher's in the order in which it sent them."""
    known = {one.number: (one.who, one.sequence) for one in kept}
    for event in events:
        if event.what in (*NAMES, "heard") and known.get(event.pk) != (int(event.text), event.fence):
            yield f"{event.what} by {event.pid}: {event.pk} was {event.text}/{event.fence}, is {known.get(event.pk)}"
    if [one.number for one in kept] != list(range(1, len(kept) + 1)):
        yield "the numbers have gaps"
    for who in {one.who for one in kept}:
        mine = [one.sequence for one in kept if one.who == who]
        if any(one >= other for one, other in pairwise(mine)):
            yield f"those of {who} are not in its order, or twice"


def _gaps(events: Sequence[Event]) -> Iterable[str]:
    at: dict[int, int] = {}
    for event in events:
        if event.what == "listens":
            at[event.pid] = event.pk
        elif event.what == "heard":
            if event.pk != at[event.pid] + 1:
                yield f"{event.pid} heard {event.pk} after {at[event.pid]}"
            at[event.pid] = event.pk


def _lost(events: Sequence[Event], kept: Sequence[Kept], effects: Sequence[Effect]) -> Iterable[str]:
    every = {one.number for one in kept}
    for name in NAMES:
        for what, seen in (
            ("read", {event.pk for event in events if event.what == name}),
            ("done", {effect.number for effect in effects if effect.name == name}),
        ):
            if missing := every - seen:
                yield f"{name}: {len(missing)} not {what}, such as {min(missing)}"


def _twice(effects: Sequence[Effect]) -> Iterable[str]:
    for name in NAMES:
        mine = [effect.number for effect in effects if effect.name == name]
        yield from (f"{name}: {other} after {one}" for one, other in pairwise(mine) if other <= one)


def _unsaid(events: Sequence[Event], kept: Sequence[Kept]) -> Iterable[str]:
    known = {one.number: (one.who, one.sequence) for one in kept}
    for event in events:
        if event.what == "published" and known.get(event.pk) != (event.pid, event.fence):
            yield f"{event.pid}/{event.fence} as {event.pk}: there is {known.get(event.pk)}"
