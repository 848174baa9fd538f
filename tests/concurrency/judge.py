"""Decides from the evidence alone whether a row was used by two holders, and how soon crashed holders were replaced."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import NamedTuple

from tests.concurrency.evidence import Event

ABOUT_A_ROW = frozenset({"acquired", "using", "releasing"})


@dataclass(slots=True)
class Use:
    """One grant as recorded by its holder, from the first to the last record.

    ``asked_at`` is when its holder began to wait for it, if recorded.
    """

    pk: int
    fence: int
    pid: int
    start: float
    end: float
    is_over: bool = False
    asked_at: float = 0.0

    def __str__(self) -> str:
        return f"row {self.pk} fence {self.fence} by {self.pid} from {self.start:.3f} to {self.end:.3f}"


class OrphanedRow(NamedTuple):
    """A row whose holder was killed, and the next holder."""

    use: Use
    killed_at: float
    next: Use | None


@dataclass(slots=True)
class Verdict:
    """Attributes:
    overlaps: pairs of uses of one row at one time.
    unfenced: pairs of uses of one row of which the later one has no higher fence.
    orphaned: the rows of killed holders, and their next holders.
    idle: (from, to) for each row that was released and then held by another process, ordered by the release.
    """

    uses: list[Use] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)
    unfenced: list[str] = field(default_factory=list)
    orphaned: list[OrphanedRow] = field(default_factory=list)
    idle: list[tuple[float, float]] = field(default_factory=list)

    @property
    def returned_after(self) -> list[float]:
        """For each killed holder, seconds until another process held its row."""
        return [row.next.start - row.killed_at for row in self.orphaned if row.next]

    @property
    def stranded(self) -> list[str]:
        """Uses whose holder was killed and whose row was never held again."""
        return [str(row.use) for row in self.orphaned if not row.next]


def judge(events: Iterable[Event]) -> Verdict:
    """Judge the evidence.

    Raises:
        ValueError: a line about a grant that the process never recorded, or recorded twice.
    """
    ordered = sorted(events, key=lambda event: event.at)
    verdict = Verdict(uses=_uses(ordered))
    rows: dict[int, list[Use]] = {}
    for use in verdict.uses:
        rows.setdefault(use.pk, []).append(use)
    for uses in rows.values():
        latest = uses[0]
        for earlier, later in pairwise(uses):
            latest = max(latest, earlier, key=lambda use: use.end)
            if later.start < latest.end:
                verdict.overlaps.append(f"{latest} and {later}")
            if later.fence <= earlier.fence:
                verdict.unfenced.append(f"{earlier} and {later}")
            # Handed over; or released and granted, which count one each.
            if earlier.is_over and later.fence <= earlier.fence + 2:
                verdict.idle.append((earlier.end, later.start))
    verdict.idle.sort()
    verdict.orphaned = _orphaned(ordered, rows)
    return verdict


def _uses(ordered: list[Event]) -> list[Use]:
    """Return the uses in the order of their starts."""
    uses: dict[tuple[int, int, int], Use] = {}
    for event in ordered:
        if event.what not in ABOUT_A_ROW:
            continue
        key = (event.pk, event.fence, event.pid)
        if (event.what == "acquired") == (key in uses) or (key in uses and uses[key].is_over):
            raise ValueError(f"out of place: {event}")
        use = uses.setdefault(key, Use(*key, event.at, event.at, asked_at=event.since))
        use.end, use.is_over = event.at, event.what == "releasing"
    return list(uses.values())


def _orphaned(ordered: list[Event], rows: dict[int, list[Use]]) -> list[OrphanedRow]:
    """Return the rows that the killed processes held; not those that they had lost before."""
    unfinished: dict[int, list[tuple[Use, Use | None]]] = defaultdict(list)
    for uses in rows.values():
        for use, successor in zip_longest(uses, uses[1:]):
            if use and not use.is_over:
                unfinished[use.pid].append((use, successor))
    return [
        OrphanedRow(use, kill.at, successor)
        for kill in ordered
        if kill.what == "killed"
        for use, successor in unfinished[kill.pid]
        if successor is None or successor.start > kill.at
    ]
