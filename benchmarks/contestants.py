"""What every way of handing out rows to processes has to offer, ours and what others do."""

from typing import ClassVar

from benchmarks.plan import Point

Note = tuple[int, float, float | None]  # ticket, when acquire returned, when the lease says that it was granted


class Contestant:
    """``prepare`` makes the rows; the instances, one in each process, run cycles.

    Attributes:
        databases: the ones it is measured on; Redis is measured beside MariaDB.
        needs_redis: it is left out where no Redis runs; whose address is in BENCH_REDIS.
        notes: about the ticket of the last cycle, if it took one.
    """

    name: ClassVar[str]
    databases: ClassVar[tuple[str, ...]] = ("mysql", "oracle_mysql", "postgres", "sqlite")
    needs_redis: ClassVar[bool] = False

    @classmethod
    def takes_part(cls, point: Point) -> bool:
        """Tell whether it is worth measuring there."""
        return True

    @classmethod
    def prepare(cls, url: str, rows: int) -> None:
        """Make ``rows`` free rows."""
        raise NotImplementedError

    def __init__(self, url: str, number: int) -> None:
        self.number = number
        self.notes: list[Note] = []

    def cycle(self, hold: float) -> float:
        """Acquire, hold for so many seconds, release; return how many seconds acquiring took."""
        raise NotImplementedError
