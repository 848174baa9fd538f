"""What is measured: how many processes, on how many rows, for how long."""

from dataclasses import dataclass, replace

DATABASES = ("mysql", "postgres", "sqlite")


@dataclass(frozen=True, slots=True)
class Point:
    """So many processes on so many rows, each of which is held for ``hold`` seconds."""

    processes: int
    rows: int
    hold: float = 0.0

    def __str__(self) -> str:
        held = f" held {self.hold * 1000:g} ms" if self.hold else ""
        return f"{self.processes} on {self.rows:,}{held}"


@dataclass(frozen=True, slots=True)
class Plan:
    """One run.

    Attributes:
        points: for MariaDB.
        other_points: for the other databases.
        waiters: (processes, threads each) that wait for nothing, and seconds until they are counted.
        keeper: (leases, ttl in seconds) that one process keeps.
        starts: fresh processes whose start is measured.
    """

    points: tuple[Point, ...]
    other_points: tuple[Point, ...]
    waiters: tuple[int, int, float]
    keeper: tuple[int, float]
    starts: int
    rounds: int
    seconds: float
    databases: tuple[str, ...] = DATABASES

    def having(self, rounds: int | None, seconds: float | None) -> "Plan":
        """Return the same plan with another number of rounds or length of a measurement."""
        return replace(self, rounds=rounds or self.rounds, seconds=seconds or self.seconds)


FEW = (Point(1, 40), Point(8, 40), Point(32, 40))
EXHAUSTED = Point(128, 40, 0.05)
FULL = Plan(
    points=(*FEW, Point(32, 100_000), Point(24, 8, 0.05), Point(48, 40, 0.05), EXHAUSTED),
    other_points=FEW,
    waiters=(8, 125, 10.0),
    keeper=(10_000, 60.0),
    starts=7,
    rounds=3,
    seconds=4.0,
)
QUICK = Plan(
    points=(Point(1, 10), Point(4, 10), Point(12, 4, 0.02)),
    other_points=(),
    waiters=(2, 25, 3.0),
    keeper=(1_000, 3.0),
    starts=2,
    rounds=1,
    seconds=0.7,
    databases=("mysql",),
)
