"""The result of a proof: the violations, and the figures of the run."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

SHOWN = 5  # of the violations of one kind
WRITE = {int: "{:,}", float: "{:.3f} s", type(None): "-"}


@dataclass
class Findings:
    """``violations``: {kind: cases}; ``figures``: what was counted; ``excused``: kinds that do not count."""

    violations: dict[str, list[str]]
    figures: dict[str, Any] = field(default_factory=dict)
    excused: Collection[str] = ()

    @property
    def is_clean(self) -> bool:
        """Whether no promise was broken."""
        return not any(cases for kind, cases in self.violations.items() if kind not in self.excused)


def show(findings: Findings) -> None:
    """Print the figures, and some of the violations of each kind."""
    print()
    for name, value in findings.figures.items():
        print(f"  {name:<52}{WRITE.get(type(value), '{}').format(value)}")
    for kind, cases in findings.violations.items():
        if cases:
            print(f"\n{kind}: {len(cases)}", *(f"  {case}" for case in cases[:SHOWN]), sep="\n")
    print(f"\n{'nothing wrong' if findings.is_clean else 'VIOLATIONS'}", flush=True)
