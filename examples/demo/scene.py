"""What is going on right now, for the display and for choosing whom to kill: follows the shop's log as it grows."""

import json
from collections import Counter, deque
from pathlib import Path

from .witness import Event


class Scene:
    """Call `look()` often; everything else is what was seen so far."""

    def __init__(self, log: Path) -> None:
        self.stream = log.open(encoding="utf-8")
        self.rest = ""
        self.began: float | None = None
        self.pages: Counter[str] = Counter()
        self.killed: set[str] = set()
        self.bans = 0
        self.news: deque[str] = deque()
        self.in_flight: dict[int, Event] = {}
        self.just_started: list[Event] = []
        self.latest: dict[str, str] = {}
        self.orphans: dict[str, tuple[str, float]] = {}

    def look(self) -> None:
        """Read the lines that came since the last look."""
        *lines, self.rest = (self.rest + self.stream.read()).split("\n")
        started = []
        for event in map(json.loads, lines):
            getattr(self, f"_{event['event']}")(event)
            if event["event"] == "start":
                started.append(event)
        self.just_started = [event for event in started if event["request"] in self.in_flight]

    def victim(self, spare: set[str]) -> str | None:
        """A crawler whose request has only just begun and takes a while, so that a kill now hits it in mid-work."""
        slow = (event["crawler"] for event in self.just_started if event["delay"] > 0.15)
        return next((crawler for crawler in slow if crawler not in spare), None)

    def close(self) -> None:
        self.stream.close()

    def _start(self, event: Event) -> None:
        proxy, crawler = event["proxy"], event["crawler"]
        self.began = self.began or event["at"]
        self.in_flight[event["request"]] = event
        self.latest[crawler] = proxy
        if proxy in self.orphans and self.orphans[proxy][0] != crawler:
            _, at = self.orphans.pop(proxy)
            self._tell(event, f"{proxy} in use again by {crawler}, {event['at'] - at:.1f} s after the kill")

    def _end(self, event: Event) -> None:
        start = self.in_flight.pop(event["request"])
        self.pages[start["proxy"]] += event["status"] == 200

    def _banned(self, event: Event) -> None:
        self.bans += 1
        self._tell(event, f"{event['proxy']} was too greedy and is banned by shop.example")

    def _killed(self, event: Event) -> None:
        self.killed.add(event["crawler"])
        proxy = self.latest[event["crawler"]]
        self.orphans[proxy] = event["crawler"], event["at"]
        self._tell(event, f"{event['crawler']} killed with SIGKILL in mid-request through {proxy}")

    def _tell(self, event: Event, what: str) -> None:
        self.news.append(f"{event['at'] - (self.began or event['at']):5.1f} s  {what}")
