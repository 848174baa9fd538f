"""What is measured: how many processes, on how many rows, for how long."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

DATABASES = ("mysql", "oracle_mysql", "postgres", "sqlite")  # "mysql" is MariaDB
PARTS = ("cycles", "grant", "waiters", "keeper", "starting")


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
        is_brief: each contestant is measured only at the first point that it takes part at.
        grants: to one waiter, with each way to be told.
        waiters: (processes, threads each) that wait for nothing, and seconds until their statements are
            counted, which takes as long again.
        keeper: (leases, ttl in seconds) that one process keeps.
        starts: fresh processes whose start is measured.
    """

    points: Mapping[str, tuple[Point, ...]]
    grants: int
    waiters: tuple[int, int, float]
    keeper: tuple[int, float]
    starts: int
    rounds: int
    seconds: float
    is_brief: bool = False
    parts: tuple[str, ...] = PARTS

    def having(self, rounds: int | None, seconds: float | None) -> "Plan":
        """Return the same plan with another number of rounds or length of a measurement."""
        return replace(self, rounds=rounds or self.rounds, seconds=seconds or self.seconds)


FEW = (Point(1, 40), Point(8, 40), Point(32, 40))
LARGE = Point(32, 100_000)
EXHAUSTED = Point(128, 40, 0.05)
BUSY = (Point(16, 8, 0.05), Point(32, 16, 0.05), Point(48, 40, 0.05))
FULL = Plan(
    points={
        "mysql": (*FEW, LARGE, *BUSY, EXHAUSTED),
        "oracle_mysql": (*FEW, EXHAUSTED),
        "postgres": (*FEW, EXHAUSTED),
        "sqlite": FEW,
    },
    grants=50,
    waiters=(50, 20, 10.0),
    keeper=(10_000, 60.0),
    starts=7,
    rounds=3,
    seconds=2.0,
)
QUICK = Plan(
    points={
        "mysql": (Point(5, 2, 0.02), Point(9, 3, 0.02), Point(4, 10)),
        "postgres": (Point(5, 2, 0.02), Point(9, 3, 0.02)),
    },
    grants=2,
    waiters=(2, 25, 3.0),
    keeper=(1_000, 3.0),
    starts=1,
    rounds=1,
    seconds=0.5,
    is_brief=True,
)
