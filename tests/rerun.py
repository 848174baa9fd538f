"""Runs failed tests once more at the end, alone and on a fresh database.

What fails again is a fault. What passes is unsteady: it is named at the end, and its first failure is kept in UNSTEADY.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.failures import Failure
from tests.outcome import Outcome

MAX_RERUNS = 10  # tests; where more fail, something is broken, and to run them again would say nothing new
UNSTEADY = Path("var", "unsteady.txt")


def run_again(outcomes: Sequence[Outcome], run: Callable[[str, Sequence[str]], Outcome]) -> None:
    """Change ``outcomes`` to what they are after a second try of the tests that failed.

    Args:
        run: runs tests on a database, given its name and what pytest calls them.
    """
    for outcome in outcomes:
        names = list(dict.fromkeys(failure.nodeid for failure in outcome.failures))
        if names and len(names) <= MAX_RERUNS:
            print(f"\n>>> {outcome.part}: what failed, once more, alone", flush=True)
            after_second_try(outcome, run(outcome.part, names))


def after_second_try(outcome: Outcome, second: Outcome) -> None:
    """Count as unsteady what the second run did not find to fail; what it could not run has failed for good."""
    is_complete = second.passed + second.failed + second.skipped >= len(
        {one.nodeid for one in outcome.failures}
    )
    if second.left_out or not is_complete or (second.failed and not second.failures):
        return
    failed_again = {failure.nodeid for failure in second.failures}
    passed = [failure for failure in outcome.failures if failure.nodeid not in failed_again]
    outcome.failures = [failure for failure in outcome.failures if failure.nodeid in failed_again]
    outcome.failed -= len(passed)
    outcome.passed += len({failure.nodeid for failure in passed})
    outcome.unsteady += passed
    keep(outcome.part, passed)


def keep(part: str, unsteady: Sequence[Failure]) -> None:
    """Write these to the end of UNSTEADY, for whoever mends them."""
    if not unsteady:
        return
    UNSTEADY.parent.mkdir(exist_ok=True)
    with UNSTEADY.open("a") as file:
        for failure in unsteady:
            moment = time.strftime("%Y-%m-%d %H:%M:%S")
            print(f"{'=' * 78}\n{moment} {part} {failure.nodeid}\n{failure.text}\n", file=file)
