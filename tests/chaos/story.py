"""The evidence in order: when the server was down, which workers stood still, which waited."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.concurrency.evidence import Event

SIGNS_OF_LIFE = frozenset({"acquired", "using", "releasing", "wrote", "timed_out"})


LOCKING = frozenset({"asks_for_many", "guards"})  # whoever is doing that may have rows locked
LATER = 1.0  # seconds after which somebody surely came later
BACK = 5.0  # seconds after the server's return in which everybody works again


class Span(NamedTuple):
    """From one moment to another."""

    start: float
    end: float

    def within(self, other: "Span") -> float:
        """Return for how many seconds both are."""
        return max(0.0, min(self.end, other.end) - max(self.start, other.start))


class Stop(NamedTuple):
    """A worker that stood still, and whether it may have had rows locked."""

    span: Span
    had_locks: bool


@dataclass(slots=True)
class Life:
    """One worker: from when to when, the moments at which it was seen to get on, and when it stood still."""

    start: float
    end: float
    signs: list[float] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    stopped_at: float | None = None
    last: str = ""

    def first_sign(self, window: Span) -> float | None:
        """Return after how many seconds of ``window`` it got on; None when it did not."""
        at = bisect_left(self.signs, window.start)
        return self.signs[at] - window.start if at < len(self.signs) and self.signs[at] <= window.end else None

    def could_run(self, window: Span) -> bool:
        """Tell whether it was there all the time and never stood still."""
        is_there = self.start < window.start and self.end > window.end
        return is_there and not any(stop.span.within(window) for stop in self.stops)


class Story:
    """Everything that happened, sorted by kind; moments as in the log."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = sorted(events, key=lambda event: event.at)
        self.counts = Counter(event.what for event in self.events)
        self.ending = next((e.at for e in self.events if e.what == "ending"), self._last)
        self.outages = [Span(e.since, e.at) for e in self.events if e.what == "server_back"]
        self.stalls = [Span(e.since, e.at) for e in self.events if e.what == "stalled"]
        self.fences = {
            e.pk: e.fence for e in self.events if e.what == "found"
        }  # of the rows, when all was over
        self.lives: dict[int, Life] = {}
        for event in self.events:
            self._live(event)
        self._asked_for_many: dict[int, list[float]] = defaultdict(list)
        for event in self.events:
            if event.what == "asks_for_many":
                self._asked_for_many[event.pid].append(event.at)
        self.waits = sorted(self._waits())

    @property
    def _last(self) -> float:
        return self.events[-1].at if self.events else 0.0

    def texts(self, what: str) -> list[str]:
        """Return what was said in each event of this kind."""
        return [f"worker {e.pid}: {e.text}" for e in self.events if e.what == what]

    def waited(self, span: Span) -> float:
        """Return for how many seconds of ``span`` somebody waited who could run and was served or gave up later."""
        total, reached = 0.0, span.start
        for wait in self.waits:
            if wait.start >= span.end:
                break
            if wait.end > reached:
                total += Span(max(wait.start, reached), min(wait.end, span.end)).within(span)
                reached = min(wait.end, span.end)
        return total

    def was_passed(self, number: int, window: Span) -> bool:
        """Tell whether this worker was not just standing in line at the end of ``window``, unpassed by later ones."""
        served = (e for e in self.events if e.pid == number and e.what in ("acquired", "timed_out"))
        wait = next((Span(e.since, e.at) for e in served if e.since < window.end < e.at), None)
        if wait is None:
            return True
        others = (e for e in self.events if e.what == "acquired" and window.start < e.at < window.end)
        return any(other.since > wait.start + LATER for other in others)

    def asked_for_many(self, number: int, since: float, until: float) -> bool:
        """Tell whether what this worker asked for between these moments was several rows at once."""
        return any(since <= at <= until for at in self._asked_for_many[number])

    def stalled(self, span: Span) -> float:
        """Return for how many seconds of ``span`` the machine was too busy to let even us run."""
        return sum(stall.within(span) for stall in self.stalls)

    def _live(self, event: Event) -> None:
        if event.what == "started":
            self.lives[event.pid] = Life(event.at, self._last)
        life = self.lives.get(event.pid)
        if life is None:
            return
        if event.what == "stopped":
            life.stopped_at = event.at
        elif event.what in ("killed", "left"):
            life.end = event.at
        if life.stopped_at is not None and event.what in ("continued", "killed"):
            life.stops.append(Stop(Span(life.stopped_at, event.at), life.last in LOCKING))
            life.stopped_at = None
        if event.what in SIGNS_OF_LIFE:
            life.signs.append(event.at)
        if event.what != "stopped":
            life.last = event.what

    def _waits(self) -> Iterable[Span]:
        stops = defaultdict(list, {number: life.stops for number, life in self.lives.items()})
        for event in self.events:
            if event.what in ("acquired", "timed_out") and event.since:
                span = Span(event.since, event.at)
                if not any(stop.span.within(span) for stop in stops[event.pid]):
                    yield span
