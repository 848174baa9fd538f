"""The result of each part of a test run, and the table at the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tests.failures import Failure

NAMED = 20  # of the tests that failed, in one part
TOLERATED = 3  # unsteady tests in a run; with more of them its result says nothing
SHOWN = 15  # last lines of what an unsteady test said


@dataclass
class Outcome:
    """One part.

    ``left_out`` says why it could not be run here, ``failures`` which tests failed, and ``unsteady`` which failed, but
    passed when they were run again, alone.
    """

    part: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    left_out: str = ""
    failures: list[Failure] = field(default_factory=list)
    unsteady: list[Failure] = field(default_factory=list)

    @classmethod
    def of(cls, written: dict[str, Any]) -> Self:
        """Return what ``dataclasses.asdict`` has made a dictionary of."""
        lists = {name: [Failure(**failure) for failure in written[name]] for name in ("failures", "unsteady")}
        return cls(**(written | lists))


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
        name_failures(row)
    is_steady = name_unsteady(outcomes)
    passed, failed, skipped = (
        sum(getattr(row, name) for row in outcomes) for name in ("passed", "failed", "skipped")
    )
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return passed > 0 and failed == 0 and is_steady


def name_failures(outcome: Outcome) -> None:
    """Print which tests failed: the last lines are all that some continuous integration keeps."""
    for failure in outcome.failures[:NAMED]:
        print(f"\nFAILED on {outcome.part}: {failure.nodeid}: {failure.why}", end="")
    if (more := len(outcome.failures) - NAMED) > 0:
        print(f"\nFAILED on {outcome.part}: and {more} more", end="")
    if outcome.failures:
        print()


def name_unsteady(outcomes: Sequence[Outcome]) -> bool:
    """Print which tests passed only when they were run again, with their first failure; return whether they are few."""
    unsteady = [(row.part, failure) for row in outcomes for failure in row.unsteady]
    for part, failure in unsteady:
        print(f"\nUNSTEADY on {part}: {failure.nodeid}: failed, and passed when it was run again, alone")
        print("\n".join(f"    {line}" for line in failure.text.splitlines()[-SHOWN:]))
    if len(unsteady) > TOLERATED:
        print(f"\n{len(unsteady)} tests are unsteady, more than {TOLERATED}: nothing can be said of the rest.")
    return len(unsteady) <= TOLERATED
