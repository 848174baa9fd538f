"""What is measured: how many processes, on how many rows, for how long."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

DATABASES = ("mysql", "postgres", "sqlite", "oracle_mysql")  # "mysql" is MariaDB
USUAL = DATABASES[:3]  # Oracle's MySQL when it is asked for
PARTS = ("cycles", "start", "grant", "waiters", "keeper", "fresh")


@dataclass(frozen=True, slots=True)
class Point:
    """So many processes on so many rows, each of which is held for ``hold`` seconds."""

    processes: int
    rows: int
    hold: float = 0.0

    def __str__(self) -> str:
        held = f" held {self.hold * 1000:g} ms" if self.hold else ""
        return f"{self.processes} on {self.rows:,}{held}"

    @property
    def is_contended(self) -> bool:
        """Whether somebody always waits."""
        return self.processes > self.rows

    @property
    def is_large(self) -> bool:
        """Whether nobody could look at every row."""
        return self.rows > 1_000

    @property
    def ideal_rate(self) -> float:
        """Cycles per second if every row were given to the next one at once; only where rows are held."""
        return self.rows / self.hold

    @property
    def ideal_wait(self) -> float:
        """Seconds that everybody would then wait, the others standing in front of it."""
        return (self.processes - self.rows) / self.ideal_rate


@dataclass(frozen=True, slots=True)
class Plan:
    """One run.

    Attributes:
        points: for each database.
        start: (point, seconds) of the processes that begin together and cold, and how long that is their start.
        grants: to one waiter, with each way to be told.
        waiters: (processes, threads each) that wait for nothing, and seconds until their statements are
            counted, which takes as long again.
        keeper: (leases, ttl in seconds) that one process keeps.
        fresh: processes of which the first lease is measured.
        rounds: each measures every contestant once; what is compared with another is compared within a round.
        warm_up: seconds that do not count, where somebody waits; elsewhere half of it.
        seconds: that count; likewise.
        is_brief: each contestant is measured only at the first point that it takes part at.
    """

    points: Mapping[str, tuple[Point, ...]]
    start: tuple[Point, float]
    grants: int
    waiters: tuple[int, int, float]
    keeper: tuple[int, float]
    fresh: int
    rounds: int
    warm_up: float
    seconds: float
    is_brief: bool = False
    parts: tuple[str, ...] = PARTS

    def having(self, rounds: int | None, warm_up: float | None, seconds: float | None) -> "Plan":
        """Return the same plan with other numbers where there are any."""
        warm_up = self.warm_up if warm_up is None else warm_up
        return replace(self, rounds=rounds or self.rounds, warm_up=warm_up, seconds=seconds or self.seconds)

    def lengths(self, point: Point) -> dict[str, float]:
        """Return for how many seconds to measure there, and to warm up."""
        share = 1.0 if point.is_contended else 0.5
        return {"warm_up": self.warm_up * share, "seconds": self.seconds * share}


FEW = (Point(8, 40), Point(32, 40))
LARGE = Point(32, 100_000)
NARROW = (Point(16, 8, 0.05), Point(32, 16, 0.05))
NEARLY_FULL = Point(48, 40, 0.05)
BUSY = (*NARROW, NEARLY_FULL)
EXHAUSTED = Point(128, 40, 0.05)
CONTENDED = (*BUSY, EXHAUSTED)
FULL = Plan(
    points={
        "mysql": (*FEW, LARGE, *CONTENDED),
        "postgres": (*FEW, *CONTENDED),
        "sqlite": (FEW[0], NARROW[0], NEARLY_FULL),
        "oracle_mysql": (*FEW, *CONTENDED),
    },
    start=(EXHAUSTED, 3.0),
    grants=30,
    waiters=(50, 20, 10.0),
    keeper=(10_000, 60.0),
    fresh=7,
    rounds=3,
    warm_up=2.0,
    seconds=6.0,
)
QUICK = Plan(
    points={
        "mysql": (Point(5, 2, 0.02), Point(9, 3, 0.02), Point(4, 10)),
        "postgres": (Point(5, 2, 0.02), Point(9, 3, 0.02)),
    },
    start=(Point(9, 3, 0.02), 0.5),
    grants=2,
    waiters=(2, 25, 3.0),
    keeper=(1_000, 3.0),
    fresh=1,
    rounds=1,
    warm_up=0.5,
    seconds=0.5,
    is_brief=True,
)
