"""The crawler processes: hires them, and now and then kills one in mid-work."""

import http.client
import time
from itertools import count, islice

from .display import Display
from .processes import DemoError, Processes
from .scene import Scene

SIZE = 12
GREEDY = (3, 14)  # no pause between two pages until they are banned; 14 comes after the second kill
KILLS = (0.2, 0.35, 0.5, 0.62)  # moments, as parts of the run: the last proxy has time to come back
FIRST_PAGE = 30.0  # seconds to wait for it


class Fleet:
    """At least SIZE crawlers at any time. `lawless` ones ignore leases."""

    def __init__(self, processes: Processes, shop_port: int, *, lawless: bool) -> None:
        self.processes = processes
        self.shop_port = shop_port
        self.lawless = lawless
        self.numbers = count(1)
        self.crawlers: set[str] = set()
        self.greedy: set[str] = set()

    def hire(self, how_many: int) -> None:
        for number in islice(self.numbers, how_many):
            self._hire(number)

    def kill(self, name: str) -> None:
        """Kill it, tell the shop for its log, and hire another."""
        self.processes.kill(name)
        self.crawlers.remove(name)
        shop = http.client.HTTPConnection("127.0.0.1", self.shop_port, timeout=5)
        shop.request("POST", f"/killed/{name}")
        shop.getresponse().read()
        shop.close()
        self.hire(1)

    def work(self, scene: Scene, display: Display, seconds: float) -> None:
        """Crawl for so many seconds from the first page on."""
        started, moments = time.monotonic(), [part * seconds for part in KILLS]
        while scene.began is None:
            if time.monotonic() > started + FIRST_PAGE:
                raise DemoError(f"no crawler fetched a page within {FIRST_PAGE:g} s")
            self._look(scene, display, 0)
        started = time.monotonic()
        while (elapsed := time.monotonic() - started) < seconds:
            self._look(scene, display, elapsed)
            if moments and elapsed > moments[0] and (victim := scene.victim(spare=self.greedy)):
                self.kill(victim)
                moments.pop(0)

    def stop(self) -> None:
        """SIGTERM: each gives its proxy back."""
        self.processes.stop(*self.crawlers)
        self.crawlers.clear()

    def _hire(self, number: int) -> None:
        name = f"crawler-{number:02}"
        arguments = [name, f"http://shop.example:{self.shop_port}"]
        if number in GREEDY and not self.lawless:
            self.greedy.add(name)
            arguments += ["--pause", "0", "--pages-per-lease", "40"]
        self.processes.start(name, f"examples.demo.{'lawless' if self.lawless else 'crawler'}", *arguments)
        self.crawlers.add(name)

    def _look(self, scene: Scene, display: Display, elapsed: float) -> None:
        time.sleep(0.02)
        scene.look()
        display.show(scene, elapsed)
        self.processes.check()
