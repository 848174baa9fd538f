"""Who is measured where: the contestants that take part at each point of a plan."""

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from benchmarks import others, ours, sketch
from benchmarks.contestants import Contestant
from benchmarks.plan import Plan, Point

CONTESTANTS: tuple[type[Contestant], ...] = (
    *(others.RawLimit, others.SkipLocked, others.BlockingPop, sketch.HandOver, sketch.ClaimFirst),
    *(ours.Sticky, ours.Spread, ours.SpreadWithoutHistory),
    *(ours.SpreadHintedByRedis, ours.SpreadHintedByPostgreSQL),
)


def contestant_named(name: str) -> type[Contestant]:
    """Return the contestant that has exactly this name."""
    return next(one for one in CONTESTANTS if one.name == name)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user wants to see; nothing chosen means everything.

    Attributes:
        points: "128" is every point with 128 processes, "32 on 100000" those whose name begins like this.
        contestants: parts of their names, e.g. "spread" or "sketch".
    """

    points: Collection[str] = ()
    contestants: Collection[str] = ()

    def takes(self, point: Point, contestant: type[Contestant]) -> bool:
        name = f"{point} ".replace(",", "")
        is_wanted = any(name.startswith(f"{words} ") for words in self.points) or not self.points
        return is_wanted and (any(part in contestant.name for part in self.contestants) or not self.contestants)


def heats(
    plan: Plan, choice: Choice, servers: Collection[str]
) -> Iterator[tuple[str, Point, type[Contestant]]]:
    """Yield (database, point, contestant) for what is measured in one round on these servers."""
    for database, points in plan.points.items():
        seen: set[str] = set()
        for point, contestant in itertools.product(points, CONTESTANTS):
            if database not in servers or database not in contestant.databases:
                continue
            if contestant.needs_redis and "redis" not in servers:
                continue
            if plan.is_brief and contestant.name in seen:
                continue
            if contestant.takes_part(point) and choice.takes(point, contestant):
                seen.add(contestant.name)
                yield database, point, contestant
