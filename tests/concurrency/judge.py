"""Decides from the evidence alone whether one row was ever used by two, and how soon the dead were replaced."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from tests.concurrency.evidence import Event


@dataclass(slots=True)
class Use:
    """One grant as its holder saw it: from when it knew that it had the row until it last said so."""

    pk: int
    fence: int
    pid: int
    start: float
    end: float
    is_over: bool = False

    def __str__(self) -> str:
        return f"row {self.pk} fence {self.fence} by {self.pid} from {self.start:.3f} to {self.end:.3f}"


@dataclass(slots=True)
class Verdict:
    """Attributes:
    overlaps: pairs of uses of one row at one time.
    unfenced: pairs of uses of one row of which the later one has no higher fence.
    returned_after: for each holder that was killed, seconds until somebody else had its row.
    stranded: uses whose holder was killed and whose row nobody had again.
    """

    uses: list[Use] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)
    unfenced: list[str] = field(default_factory=list)
    returned_after: list[float] = field(default_factory=list)
    stranded: list[str] = field(default_factory=list)


def judge(events: Iterable[Event]) -> Verdict:
    """Return what the evidence shows.

    Raises:
        ValueError: a line about a grant that was never noted, or noted twice, by that process.
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
    for event in ordered:
        if event.what == "killed":
            _follow(event, rows, verdict)
    return verdict


def _uses(ordered: list[Event]) -> list[Use]:
    """Return the uses in the order in which they began."""
    uses: dict[tuple[int, int, int], Use] = {}
    for event in ordered:
        if event.what == "killed":
            continue
        key = (event.pk, event.fence, event.pid)
        if (event.what == "acquired") == (key in uses) or (key in uses and uses[key].is_over):
            raise ValueError(f"out of place: {event}")
        use = uses.setdefault(key, Use(event.pk, event.fence, event.pid, event.at, event.at))
        use.end, use.is_over = event.at, event.what == "releasing"
    return list(uses.values())


def _follow(kill: Event, rows: dict[int, list[Use]], verdict: Verdict) -> None:
    """See what became of what the killed process held."""
    for uses in rows.values():
        for use in uses:
            if use.pid == kill.pid and not use.is_over:
                starts = [other.start for other in uses if other.start > kill.at]
                if starts:
                    verdict.returned_after.append(min(starts) - kill.at)
                else:
                    verdict.stranded.append(str(use))
