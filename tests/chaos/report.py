"""The report of a run, for people."""

from collections.abc import Mapping

from tests.chaos.judge import Findings
from tests.chaos.terms import ChaosPlan

SHOWN = 5  # of the violations of one kind
WIDTH = 50


def show(plan: ChaosPlan, findings: Findings) -> None:
    """Print what was thrown, what was counted and what was found."""
    print(f"\n{plan.database}, {plan.seconds:.0f} s, seed {plan.seed}")
    _table("thrown at it", findings.thrown)
    _table("counted", findings.counted)
    _table("violations", {kind: len(cases) for kind, cases in findings.violations.items()})
    for what in findings.left_out:
        print(f"\nLEFT OUT: {what}")
    for kind, cases in findings.violations.items():
        if cases:
            print(f"\n{kind}:")
            for case in cases[:SHOWN]:
                print(f"  {case}")
            if len(cases) > SHOWN:
                print(f"  ... and {len(cases) - SHOWN} more")
    print(f"\n{'nothing wrong' if findings.is_clean else 'VIOLATIONS'}", flush=True)


def _table(title: str, rows: Mapping[str, float | int | None]) -> None:
    print(f"\n{title}")
    for name, value in rows.items():
        text = "-" if value is None else f"{value:.3f} s" if isinstance(value, float) else f"{value:,}"
        print(f"  {name:<{WIDTH}}{text:>12}")
