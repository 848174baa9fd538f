"""What the promises of the locks say about the evidence of a run."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.concurrency.evidence import Event
from tests.locks.proof import notified, terms
from tests.proof.findings import Findings

TWO, OVER, BESIDE = "two hold one lock", "more permits than there are", "a reader or writer beside a writer"
FENCE, LATE, BUFFER = "a lower fence later", "late write behind the guard", "the buffer is wrong"
MISSED, LOST, UNEXPECTED = (
    "nobody notified though somebody waits",
    "a notification was lost",
    "unexpected error",
)
KINDS = (TWO, OVER, BESIDE, FENCE, LATE, BUFFER, MISSED, LOST, UNEXPECTED)
DONE = ("notified", "woken", "late", "given_back", "upgraded", "made_again")
BROKER = "broker_killed", "broker_stopped"
SUFFERED = ("killed", "ended_itself", "stopped", "restarted", "cut", "reply_lost", *BROKER)
TOLD = ("unavailable", "acquiretimeout", "leaselost", "upgradeconflict")


class Span(NamedTuple):
    """Something that was certainly held from ``begun`` to ``ended``."""

    begun: float
    ended: float
    who: int
    what: str
    count: int
    fence: int


class Written(NamedTuple):
    """A step, in the order of the table."""

    page: int
    before: int
    fence: int


def examine(events: Iterable[Event], steps: Sequence[Written]) -> Findings:
    """Judge a run."""
    ordered = sorted(events)
    spans = list(_spans(ordered))
    found = Findings({kind: [] for kind in KINDS})
    of = defaultdict[str, list[Span]](list)
    for span in spans:
        of["catalogue" if span.what in ("read", "write") else span.what].append(span)
    for name, those in of.items():
        if name == terms.BUFFER or name.startswith(terms.LOCK):
            found.violations[TWO] += _crowds(those, 1)
            found.violations[FENCE] += _fences(those)
    found.violations[OVER] += _crowds(of[terms.SEMAPHORE], terms.PERMITS)
    heavy = [_as_permits(span) for span in of["catalogue"]]
    found.violations[BESIDE] += _crowds(heavy, max(terms.READERS))
    found.violations[FENCE] += _writers(of["catalogue"])
    found.violations[LATE] += _late(steps)
    found.violations[BUFFER] += _buffer(steps)
    found.violations[MISSED] += notified.missed(ordered)
    found.violations[LOST] += notified.lost(ordered)
    found.violations[UNEXPECTED] += [event.text for event in ordered if event.what == "unexpected"]
    found.figures |= {f"held: {name}": len(those) for name, those in sorted(of.items())}
    found.figures |= {
        "items produced": sum(step.page == terms.PRODUCED for step in steps),
        "items consumed": sum(step.page == terms.CONSUMED for step in steps),
        "writes behind the guard": sum(step.page < terms.LOCKS for step in steps),
    }
    found.figures |= {word: sum(event.what == word for event in ordered) for word in (*DONE, *SUFFERED, *TOLD)}
    return found


def _spans(events: Iterable[Event]) -> Iterator[Span]:
    open_spans: dict[tuple[int, int], Span] = {}
    for event in events:
        if event.what not in ("begun", "held"):
            continue
        what, count = event.text.rsplit(" ", 1)
        which = event.pid, event.pk
        begun = open_spans[which].begun if which in open_spans else event.at
        open_spans[which] = Span(begun, event.at, event.pid, what, int(count), event.fence)
    yield from open_spans.values()


def _as_permits(span: Span) -> Span:
    return span._replace(count=max(terms.READERS) if span.what == "write" else 1)


def _crowds(spans: Iterable[Span], most: int) -> Iterator[str]:
    """Yield the moments at which more than ``most`` were held."""
    moments = []
    for span in spans:
        # What ends at a moment is over before what begins.
        moments += [(span.begun, 1, span), (span.ended, 0, span)]
    inside: set[Span] = set()
    for at, begins, span in sorted(moments):
        if not begins:
            inside.discard(span)
            continue
        if span.ended > span.begun:
            inside.add(span)
        if sum(one.count for one in inside) > most:
            told = ", ".join(f"{one.who} {one.what} x{one.count} fence {one.fence}" for one in sorted(inside))
            yield f"at {at:.6f}: {told}"


def _fences(spans: Iterable[Span]) -> Iterator[str]:
    for one, following in pairwise(sorted(spans)):
        if following.fence <= one.fence:
            yield f"{following.what}: {one.fence} of {one.who}, then {following.fence} of {following.who}"


def _writers(spans: Iterable[Span]) -> Iterator[str]:
    """Yield the writers whose fence is not above that of all who were done before; who upgrades may keep its own."""
    done, latest = sorted(spans, key=lambda span: span.ended, reverse=True), Span(0, 0, 0, "", 0, -1)
    for writer in sorted(span for span in done if span.what == "write"):
        while done and done[-1].ended <= writer.begun:
            latest = max(latest, done.pop(), key=lambda span: span.fence)
        if writer.fence < latest.fence or (writer.fence == latest.fence and writer.who != latest.who):
            yield f"write: {latest.fence} of {latest.who}, then {writer.fence} of {writer.who}"


def _late(steps: Iterable[Written]) -> Iterator[str]:
    last: dict[int, int] = {}
    for step in steps:
        if step.page < terms.LOCKS:
            if step.before != last.get(step.page, 0) or step.fence < step.before:
                yield f"page {step.page}: {step.fence} over {step.before}, after {last.get(step.page, 0)}"
            last[step.page] = step.fence


def _buffer(steps: Iterable[Written]) -> Iterator[str]:
    produced: list[int] = []
    consumed: list[int] = []
    for step in steps:
        if step.page == terms.PRODUCED:
            produced.append(step.before)
        elif step.page == terms.CONSUMED:
            consumed.append(step.before)
        if len(produced) - len(consumed) > terms.CAPACITY or len(consumed) > len(produced):
            yield f"{len(produced)} were put in, {len(consumed)} taken out"
    if produced != list(range(1, len(produced) + 1)):
        yield f"items were put in twice, or not: {produced[:20]}"
    if consumed != produced[: len(consumed)]:
        yield f"items were taken twice, or passed over: {consumed[:20]}"
