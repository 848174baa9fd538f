"""Shows the run as it goes: a table that refreshes itself on a terminal, plain lines everywhere else."""

import time
from collections import Counter
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from resourcepool.models import Proxy

from .scene import Scene

REFRESH = 0.25  # seconds between two tables
LINES = 3.0  # seconds between two plain lines
HEADLINES = 8
COLUMNS = (("Proxy", 11), ("Country", 7), ("Leased to", 16), ("Fence", 5), ("Pages", 5), ("Now", 14))


@dataclass(frozen=True)
class Standing:
    """What the database says of one proxy."""

    country: str
    fence: int
    holder: str
    state: str


def standings() -> dict[str, Standing]:
    """Every proxy by its address, as the database has it now."""
    proxies = Proxy.objects.order_by("pk")
    holders = dict(proxies.held().values_list("host", "holder"))
    quarantined = set(proxies.quarantined().values_list("host", flat=True))
    free = set(proxies.available().values_list("host", flat=True))

    def state(host: str) -> str:
        if host in holders:
            return "leased"
        if host in quarantined:
            return "quarantined"
        return "free" if host in free else "resting"  # the cool-down after a lease

    rows = proxies.values_list("host", "country", "fence")
    return {host: Standing(country, fence, holders.get(host, ""), state(host)) for host, country, fence in rows}


class Display:
    """Call `show()` as often as you like. The database says who holds what, the shop's log what is fetched."""

    def __init__(self, console: Console, seconds: float) -> None:
        self.console = console
        self.seconds = seconds
        self.live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self.headlines: list[str] = []
        self.shown_at = 0.0

    def show(self, scene: Scene, elapsed: float) -> None:
        while scene.news:
            self._tell(scene.news.popleft())
        now = time.monotonic()
        if now - self.shown_at < (REFRESH if self.live else LINES):
            return
        self.shown_at = now
        if self.live:
            self.live.update(self._screen(scene, elapsed), refresh=True)
        elif scene.began is not None:
            states = Counter(standing.state for standing in standings().values())
            shown = ", ".join(f"{count} {state}" for state, count in states.items())
            self._print(f"{elapsed:5.1f} s  {scene.pages.total()} pages; proxies: {shown}")

    def __enter__(self) -> "Display":
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.live:
            self.live.stop()
            for headline in self.headlines:
                self._print(headline)

    def _tell(self, headline: str) -> None:
        self.headlines.append(headline)
        if not self.live:
            self._print(headline)

    def _print(self, line: str) -> None:
        self.console.print(f"  {line}")

    def _screen(self, scene: Scene, elapsed: float) -> Group:
        table = Table(title=self._title(scene, elapsed), title_justify="left", title_style="bold", expand=False)
        for column, width in COLUMNS:
            table.add_column(column, min_width=width, justify="right" if width == 5 else "left")
        busy = {event["proxy"]: event["path"] for event in scene.in_flight.values()}
        for host, standing in standings().items():
            now = Text(busy.get(host, ""), "dim") if standing.state == "leased" else Text(standing.state)
            holder = standing.holder
            leased = Text(f"{holder}, dead", "red") if holder in scene.killed else Text(holder, "green")
            table.add_row(host, standing.country, leased, str(standing.fence), str(scene.pages[host]), now)
        latest = self.headlines[-HEADLINES:]
        return Group(table, *(Text(f"  {headline}", overflow="ellipsis", no_wrap=True) for headline in latest))

    def _title(self, scene: Scene, elapsed: float) -> str:
        if scene.began is None:
            return "The crawlers are starting ..."
        counts = (
            f"pages {scene.pages.total()}, crawlers killed {len(scene.killed)}, proxies banned {scene.bans}"
        )
        return f"{elapsed:.0f} of {self.seconds:.0f} s: {counts}"
