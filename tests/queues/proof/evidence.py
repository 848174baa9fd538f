"""The evidence of a run for the judge, besides the log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.chaos.remains import Remains
from tests.chaos.story import Span


@dataclass(frozen=True)
class Change:
    """One thing that was done to the servers when all was settled, until it was again.

    Attributes:
        before: {server: number of its queues}; after: the servers there were then.
        moved: how many queues had another server.
        is_settled: False: it was not within the patience of the run.
    """

    name: str
    span: Span
    before: Mapping[int, int] = field(default_factory=dict)
    after: frozenset[int] = frozenset()
    moved: int = 0
    is_settled: bool = True

    @property
    def least(self) -> int:
        """The least number of moves for an even distribution."""
        return fewest(self.before, self.after)

    @property
    def seconds(self) -> float:
        return self.span.end - self.span.start

    def __str__(self) -> str:
        return f"{self.name} at {self.span.start:.3f}: {self.moved} moved, {self.least} had to"


def fewest(before: Mapping[int, int], after: Iterable[int]) -> int:
    """Return how many queues have to move so that these servers share all of them evenly, to within one."""
    counts = sorted((before.get(server, 0) for server in after), reverse=True)
    if not counts:
        return 0
    share, more = divmod(sum(before.values()), len(counts))
    return sum(max(0, share + (place < more) - count) for place, count in enumerate(counts))


@dataclass
class Evidence:
    """Everything but the log.

    Attributes:
        changes: those that were made one at a time.
        writes: what was written under ``guard``.
        left: sentences about what was still there when everybody had left.
    """

    changes: list[Change] = field(default_factory=list)
    writes: Remains = field(default_factory=Remains)
    left: list[str] = field(default_factory=list)
