"""The schedule of faults, drawn from the seed, and the loop that injects them."""

import heapq
import itertools
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.fleet import Fleet
from tests.chaos.look import note_fences
from tests.chaos.story import BACK
from tests.chaos.terms import TTL
from tests.chaos.wire import Wire
from tests.concurrency.evidence import Log
from tests.eventually import InBackground
from tests.servers import Server

BRIEF, LONG = 1.0, TTL + 1.5  # seconds for which a process stands still, or a statement is on its way
LOST = ("claim", "renew", "release", "handover", "ticket", "commit", "any")
HELD = ("claim", "renew", "renew", "release", "handover", "write")
STEP = 0.01  # seconds between two looks at the clock
RECOVERY = 8.0  # seconds that a run goes on after the server was killed
STALL = 0.1  # seconds by which we ourselves were late: the machine was busy, and others were late, too


@dataclass(frozen=True)
class Weather:
    """How often each thing happens, per second; the server is killed every so many seconds (0: never)."""

    kills: float = 2.0
    stops: float = 1.0
    cuts: float = 1.0
    lost_replies: float = 3.0
    held_up: float = 1.0
    server_killed_every: float = 20.0


class Faults:
    """Throws them until it is told to end."""

    def __init__(self, weather: Weather, seed: int, fleet: Fleet, wire: Wire, server: Server, log: Log) -> None:
        self._weather = weather
        self._chance = {name: random.Random(f"{seed}/{name}") for name in vars(weather)}
        self._fleet, self._wire, self._server, self._log = fleet, wire, server, log
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._restart: InBackground | None = None
        self._back_at = -math.inf

    def throw(self, seconds: float, is_enough: Callable[[], bool]) -> None:
        """Throw everything for so long, and until ``is_enough()``, which may take the time to show how far it is."""
        began = now = time.monotonic()
        for name in ("kills", "stops", "cuts", "lost_replies", "held_up"):
            self._again(name, now)
        jitter = self._chance["server_killed_every"].random
        for moment in crashes(seconds, self._weather.server_killed_every):
            self._at(began + moment + jitter(), self._crash)
        try:
            while not is_enough() or now < began + seconds:
                self._turn(now)
                time.sleep(STEP)
                before, now = now, time.monotonic()
                if now - before > STALL:
                    self._log.tell("stalled", 0, since=before)
        finally:
            if self._restart:
                self._restart.result(90)

    def _turn(self, now: float) -> None:
        self._fleet.go_on()
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2]()

    def _at(self, moment: float, turn: Callable[[], None]) -> None:
        heapq.heappush(self._due, (moment, next(self._order), turn))

    def _again(self, name: str, now: float) -> None:
        """Let it happen at a random moment, and then again and again."""
        rate = getattr(self._weather, name)
        if rate:
            self._at(now + self._chance[name].expovariate(rate), lambda: self._happen(name))

    def _happen(self, name: str) -> None:
        chance = self._chance[name]
        if name == "kills":
            self._fleet.kill(chance.choice(self._fleet.members))
        elif name == "stops":
            self._fleet.stop(chance.choice(self._fleet.running()), chance.choice([BRIEF, LONG]))
        elif name == "cuts":
            self._wire.cut()
        elif name == "lost_replies" and not self._is_away():
            self._wire.lose(chance.choice(LOST))
        elif name == "held_up" and not self._is_away(BACK):  # or somebody would not get on, and rightly
            self._wire.hold(chance.choice(HELD), LONG)
        self._again(name, time.monotonic())

    def _is_away(self, lately: float = 0.0) -> bool:
        """Tell whether the server is away, or came back so few seconds ago."""
        return time.monotonic() < self._back_at + lately

    def _crash(self) -> None:
        """Kill the server and bring it back, while everything else goes on."""
        if self._restart and self._restart.is_alive():
            return
        self._back_at = math.inf
        self._restart = InBackground(self._restart_server, self._chance["server_killed_every"].uniform(0, 2))

    def _restart_server(self, away: float) -> None:
        down = time.monotonic()
        self._server.kill()
        self._log.tell("server_killed", 0, at=down)
        time.sleep(away)
        self._server.start()
        self._back_at = time.monotonic()
        self._log.tell("server_back", 0, since=down)
        note_fences(self._log)


def crashes(seconds: float, every: float) -> list[float]:
    """Return when to kill the server in a run of so many seconds: at least once, with time to recover after each."""
    if not every:
        return []
    moments = [every * (number - 0.25) for number in range(1, int(seconds / every) + 1)]
    return [moment for moment in moments if moment < seconds - RECOVERY] or [seconds / 4]
