"""What came out of each part of a test run, and the table at the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field

NAMED = 20  # of the tests that failed, in one part


@dataclass
class Outcome:
    """One part; ``left_out`` says why it could not be run here, ``failures`` which tests failed, and with what."""

    part: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    left_out: str = ""
    failures: list[str] = field(default_factory=list)


def summary(outcomes: Sequence[Outcome]) -> bool:
    """Print the table, what was left out, and the closing line; return whether all that ran has passed."""
    print(f"\n{'part':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for row in outcomes:
        if row.left_out:
            print(f"{row.part:<16}{'LEFT OUT':>8}")
        else:
            print(f"{row.part:<16}{row.passed:>8}{row.failed:>8}{row.skipped:>9}{row.seconds:>9.0f}")
    missing = [row for row in outcomes if row.left_out]
    if missing:
        print("\n" + "!" * 78)
        for row in missing:
            print(f"!! NOT TESTED: {row.part}: {row.left_out}")
        print("!! make test installs what is missing where it can: on Debian and Ubuntu, as root or by sudo.")
        print("!" * 78)
    for row in outcomes:
        named(row)
    passed, failed, skipped = (
        sum(getattr(row, name) for row in outcomes) for name in ("passed", "failed", "skipped")
    )
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return passed > 0 and failed == 0


def named(outcome: Outcome) -> None:
    """Print which tests failed: the last lines are all that some continuous integration keeps."""
    for failure in outcome.failures[:NAMED]:
        print(f"\nFAILED on {outcome.part}: {failure}", end="")
    if (more := len(outcome.failures) - NAMED) > 0:
        print(f"\nFAILED on {outcome.part}: and {more} more", end="")
    if outcome.failures:
        print()
