"""The outcomes of checks, and their tally."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext_noop as _

from resourcepool.events import joined, sentence_for
from resourcepool.resources.state import Verdict


class CheckAction(StrEnum):
    """What was done with a resource."""

    NOTHING = "nothing"
    QUARANTINED = _("quarantined")
    RETURNED = _("returned")  # to service
    SKIPPED = "skipped"  # somebody holds it, or it is out of service
    LOST = _("lost")  # an operator took it away from the check


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome for one resource; ``verdict`` is None when it was not checked."""

    pk: Any
    name: str
    verdict: Verdict | None
    seconds: float | None
    why: str
    done: CheckAction


class Tally:
    """Counts outcomes and passes them on."""

    def __init__(self, on_result: Callable[[CheckResult], object] = lambda _: None) -> None:
        self.verdicts: Counter[Verdict] = Counter()
        self.done: Counter[CheckAction] = Counter()
        self.skipped: Counter[str] = Counter()  # by why they were
        self._tell = on_result

    def __call__(self, checked: CheckResult) -> None:
        """Count an outcome."""
        self.done[checked.done] += 1
        if checked.done is CheckAction.SKIPPED:
            self.skipped[checked.why] += 1
        if checked.verdict is not None:
            self.verdicts[checked.verdict] += 1
        self._tell(checked)

    def __str__(self) -> str:
        """Say "38 ok, 2 bad, 1 unknown; 2 quarantined, 1 returned to service, 4 skipped: in use"."""
        verdicts = sentence_for(
            "verdicts", **{f"count_{verdict.value}": self.verdicts[verdict] for verdict in Verdict}
        )
        codes = {
            CheckAction.QUARANTINED: "quarantined",
            CheckAction.RETURNED: "returned",
            CheckAction.LOST: "taken_meanwhile",
        }
        done = joined(
            [sentence_for(code, count=self.done[what]) for what, code in codes.items() if self.done[what]],
            "and",
        )
        skipped = sorted(self.skipped.items(), key=lambda pair: (-pair[1], pair[0]))
        left_alone = [sentence_for("skipped", count=number, why=why) for why, number in skipped]
        return joined([verdicts, *filter(None, [done]), *left_alone])
