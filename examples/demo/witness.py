"""The independent witness: judges a run by nothing but the target site's own log.

Every line of the log is one JSON object: `at`, seconds by the site's own monotonic clock, and an `event`:

    start    a request came in: request (its number), proxy, crawler, fence, path
    end      its answer is about to leave: request, status
    banned   the site turned a proxy away: proxy
    killed   somebody told the site that a crawler has just been killed: crawler
"""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

Event = dict[str, Any]


@dataclass(frozen=True)
class Use:
    """A proxy in somebody's hands from `start` to `end`: one request, or all the requests of one lease."""

    proxy: str
    crawler: str
    fence: int | None
    start: float
    end: float

    @property
    def owner(self) -> tuple[str, int | None]:
        return self.crawler, self.fence

    def __str__(self) -> str:
        lease = "without a lease" if self.fence is None else f"with fence {self.fence}"
        return f"{self.crawler} {lease} from {self.start:.3f} s to {self.end:.3f} s"


@dataclass(frozen=True)
class Clash:
    """Two uses of one proxy that contradict each other."""

    first: Use
    second: Use

    def __str__(self) -> str:
        return f"{self.first.proxy}: {self.first}; {self.second}"


@dataclass(frozen=True)
class Kill:
    """A killed crawler, and how long its proxy lay idle until somebody else used it (None: until the end)."""

    crawler: str
    proxy: str | None
    in_flight: bool
    idle: float | None


@dataclass(frozen=True)
class Ban:
    """A proxy that the site turned away, and how many requests of other leases it saw through it afterwards."""

    proxy: str
    later_requests: int


@dataclass
class Report:
    """What the log proves. `problems()` is empty for a good run."""

    pages: int = 0
    seconds: float = 0.0
    requests: list[Use] = field(default_factory=list)
    sessions: list[Use] = field(default_factory=list)
    overlapping_requests: list[Clash] = field(default_factory=list)
    overlapping_sessions: list[Clash] = field(default_factory=list)
    fences_out_of_order: list[Clash] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    bans: list[Ban] = field(default_factory=list)

    @property
    def crawlers(self) -> set[str]:
        return {use.crawler for use in self.requests}

    @property
    def proxies(self) -> set[str]:
        return {use.proxy for use in self.requests}

    def problems(self) -> list[str]:
        """One sentence for each thing that must not happen; an empty log proves nothing, so it is one too."""
        wrong: dict[str, Sequence[object]] = {
            "requests that began while another's was running through the same proxy": self.overlapping_requests,
            "leases that began before an earlier one of the same proxy had ended": self.overlapping_sessions,
            "leases whose fence is not above the one before on the same proxy": self.fences_out_of_order,
            "killed crawlers whose proxy was never used again": [k for k in self.kills if k.idle is None],
            "banned proxies that somebody else used again": [b for b in self.bans if b.later_requests],
        }
        nothing = [] if self.pages else ["not one page was fetched, so the log proves nothing"]
        return nothing + [f"{what}: {len(cases)}" for what, cases in wrong.items() if cases]


def examine(lines: Iterable[str]) -> Report:
    """Judge a log. A request that never ended counts as running until the last line of the log.

    That holds for a killed crawler's last request too: its proxy was in use until the site had answered.
    """
    events = [json.loads(line) for line in lines]
    if not events:
        return Report()
    unended = max(events, key=lambda event: event["at"])
    ends = {event["request"]: event for event in events if event["event"] == "end"}
    requests = [
        Use(
            start["proxy"],
            start["crawler"],
            start["fence"],
            start["at"],
            ends.get(start["request"], unended)["at"],
        )
        for start in events
        if start["event"] == "start"
    ]
    requests.sort(key=lambda use: use.start)
    sessions = _sessions(requests)
    return Report(
        pages=sum(end["status"] == 200 for end in ends.values()),
        seconds=unended["at"] - min(event["at"] for event in events),
        requests=requests,
        sessions=sessions,
        overlapping_requests=_overlaps(requests),
        overlapping_sessions=_overlaps(sessions),
        fences_out_of_order=_out_of_order(sessions),
        kills=[_kill(event, requests) for event in events if event["event"] == "killed"],
        bans=[_ban(event, requests) for event in events if event["event"] == "banned"],
    )


def _sessions(requests: Sequence[Use]) -> list[Use]:
    """One use for each lease: from the start of its first request to the end of its last one."""
    groups = _grouped(requests, lambda use: (use.proxy, use.owner))
    spans = (
        Use(uses[0].proxy, uses[0].crawler, uses[0].fence, uses[0].start, max(use.end for use in uses))
        for uses in groups
    )
    return sorted(spans, key=lambda use: use.start)


def _overlaps(uses: Sequence[Use]) -> list[Clash]:
    """Every use that began while another owner's use of the same proxy was still running."""
    found = []
    for same_proxy in _grouped(uses, lambda use: use.proxy):
        running: list[Use] = []
        for use in same_proxy:
            running = [earlier for earlier in running if earlier.end > use.start]
            others = (earlier for earlier in running if earlier.owner != use.owner)
            found += [Clash(other, use) for other in islice(others, 1)]
            running.append(use)
    return found


def _out_of_order(sessions: Sequence[Use]) -> list[Clash]:
    """Every lease whose fence is not above that of the lease before it on the same proxy."""
    found = []
    for same_proxy in _grouped(sessions, lambda use: use.proxy):
        fenced = [(use.fence, use) for use in same_proxy if use.fence is not None]
        found += [Clash(a, b) for (before, a), (after, b) in pairwise(fenced) if after <= before]
    return found


def _kill(event: Event, requests: Sequence[Use]) -> Kill:
    crawler, at = event["crawler"], event["at"]
    last = next((use for use in reversed(requests) if use.crawler == crawler and use.start <= at), None)
    if last is None:
        return Kill(crawler, None, in_flight=False, idle=None)
    again = (
        use.start for use in requests if use.proxy == last.proxy and use.owner != last.owner and use.start > at
    )
    back = next(again, None)
    return Kill(crawler, last.proxy, in_flight=last.end > at, idle=None if back is None else back - at)


def _ban(event: Event, requests: Sequence[Use]) -> Ban:
    proxy, at = event["proxy"], event["at"]
    culprit = next((use.owner for use in reversed(requests) if use.proxy == proxy and use.start <= at), None)
    later = (use for use in requests if use.proxy == proxy and use.start > at and use.owner != culprit)
    return Ban(proxy, later_requests=sum(1 for _ in later))


def _grouped(uses: Iterable[Use], key: Callable[[Use], Hashable]) -> Iterable[list[Use]]:
    groups = defaultdict(list)
    for use in uses:
        groups[key(use)].append(use)
    return groups.values()
