"""The results of checks, and their summary."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from resourcepool.events import joined, sentence_for
from resourcepool.resources.state import Verdict
from resourcepool.translation import gettext_noop as _


class CheckAction(StrEnum):
    """The action taken on a resource after its check."""

    NOTHING = "nothing"
    QUARANTINED = _("quarantined")
    RETURNED = _("returned")  # to service
    SKIPPED = "skipped"  # held, or out of service
    LOST = _("lost")  # an operator revoked the lease of the check


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result for one resource; ``verdict`` is None if it was not checked."""

    pk: Any
    name: str
    verdict: Verdict | None
    seconds: float | None
    why: str
    done: CheckAction


class Tally:
    """Counts results and passes them on."""

    def __init__(self, on_result: Callable[[CheckResult], object] = lambda _: None) -> None:
        self.verdicts: Counter[Verdict] = Counter()
        self.done: Counter[CheckAction] = Counter()
        self.skipped: Counter[str] = Counter()  # by reason
        self._on_result = on_result

    def __call__(self, result: CheckResult) -> None:
        """Count a result."""
        self.done[result.done] += 1
        if result.done is CheckAction.SKIPPED:
            self.skipped[result.why] += 1
        if result.verdict is not None:
            self.verdicts[result.verdict] += 1
        self._on_result(result)

    def __str__(self) -> str:
        """Return "38 ok, 2 bad, 1 unknown; 2 quarantined, 1 returned to service, 4 skipped: in use"."""
        verdicts = sentence_for(
            "verdicts", **{f"count_{verdict.value}": self.verdicts[verdict] for verdict in Verdict}
        )
        codes = {
            CheckAction.QUARANTINED: "quarantined",
            CheckAction.RETURNED: "returned",
            CheckAction.LOST: "taken_meanwhile",
        }
        done = joined(
            [
                sentence_for(code, count=self.done[action])
                for action, code in codes.items()
                if self.done[action]
            ],
            "and",
        )
        skipped = sorted(self.skipped.items(), key=lambda pair: (-pair[1], pair[0]))
        skipped_texts = [sentence_for("skipped", count=number, why=why) for why, number in skipped]
        return joined([verdicts, *filter(None, [done]), *skipped_texts])
