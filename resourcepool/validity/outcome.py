"""The outcomes of checks, and their tally."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext_noop as _

from resourcepool.events import joined, say
from resourcepool.resources.state import Verdict


class Done(StrEnum):
    """What was done with a resource."""

    NOTHING = "nothing"
    QUARANTINED = _("quarantined")
    RETURNED = _("returned")  # to service
    SKIPPED = "skipped"  # somebody holds it, or it is out of service
    LOST = _("lost")  # an operator took it away from the check


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome for one resource; ``verdict`` is None when it was not checked."""

    pk: Any
    name: str
    verdict: Verdict | None
    seconds: float | None
    why: str
    done: Done


class Tally:
    """Counts outcomes and passes them on."""

    def __init__(self, tell: Callable[[Checked], object] = lambda _: None) -> None:
        self.verdicts: Counter[Verdict] = Counter()
        self.done: Counter[Done] = Counter()
        self.skipped: Counter[str] = Counter()  # by why they were
        self._tell = tell

    def __call__(self, checked: Checked) -> None:
        """Count an outcome."""
        self.done[checked.done] += 1
        if checked.done is Done.SKIPPED:
            self.skipped[checked.why] += 1
        if checked.verdict is not None:
            self.verdicts[checked.verdict] += 1
        self._tell(checked)

    def __str__(self) -> str:
        """Say "38 ok, 2 bad, 1 unknown; 2 quarantined, 1 returned to service, 4 skipped: in use"."""
        verdicts = say("verdicts", **{f"count_{verdict.value}": self.verdicts[verdict] for verdict in Verdict})
        codes = {Done.QUARANTINED: "quarantined", Done.RETURNED: "returned", Done.LOST: "taken_meanwhile"}
        done = joined(
            [say(code, count=self.done[what]) for what, code in codes.items() if self.done[what]], "and"
        )
        skipped = sorted(self.skipped.items(), key=lambda pair: (-pair[1], pair[0]))
        left_alone = [say("skipped", count=number, why=why) for why, number in skipped]
        return joined([verdicts, *filter(None, [done]), *left_alone])
