"""The short form: sixty schedules, that a seed repeats, and that the judge objects when a guard is missing.

The simulation replaces clocks and threads for its whole process, so it runs in one of its own.
"""

import re
import subprocess
import sys

import pytest

from tests.guards import Mutation
from tests.simulation.mutate import source
from tests.simulation.prove import all_guards

pytestmark = [pytest.mark.only("sqlite")]

SEEDS = 60


def simulation(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


def counted(*arguments: str) -> list[int]:
    """Return how many statements and changes of rows there were."""
    found = re.search(r"(\d+) statements, (\d+) changes", simulation(*arguments).stdout)
    assert found is not None
    return [int(number) for number in found.groups()]


def test_every_invariant_holds_in_every_schedule() -> None:
    done = simulation(f"--seeds={SEEDS}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SEEDS} schedules" in done.stdout


def test_a_seed_is_a_schedule_statement_by_statement() -> None:
    first, again = simulation("--seed=7"), simulation("--seed=7")
    assert first.stdout == again.stdout
    assert "UPDATE resourcepool_proxy" in first.stdout


def test_a_seed_is_the_same_schedule_whatever_was_played_before() -> None:
    both = counted("--seeds=8")
    assert both == [
        sum(pair) for pair in zip(counted("--seeds=4"), counted("--seeds=4", "--from=4"), strict=True)
    ]


@pytest.mark.parametrize("guard", ["expiry out of claim", "settling out of claim"])  # --prove: all of them
def test_a_missing_guard_is_noticed_and_the_command_repeats_it(guard: str) -> None:
    found = simulation("--seeds=1000", f"--without={guard}")
    assert found.returncode == 1, found.stdout + found.stderr
    violation = re.search(r"^seed (\d+): (.*)$", found.stdout, re.MULTILINE)
    assert violation is not None
    assert f'--seed {violation[1]} --without "{guard}"' in found.stdout
    again = simulation(f"--seed={violation[1]}", f"--without={guard}")
    assert again.returncode == 1
    assert violation[2] in again.stdout


@pytest.mark.parametrize("guard", all_guards(), ids=lambda guard: guard.name)
def test_every_guard_that_can_be_taken_out_is_there(guard: Mutation) -> None:
    """The list is by text; whoever moves a guard moves its text there, too (``--prove`` shows that it is missed)."""
    assert source(guard).count(guard.guard) == 1
