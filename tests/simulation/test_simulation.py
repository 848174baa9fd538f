"""The short form: thirty schedules, the repetition of a seed, and the detection of a missing guard.

The simulation replaces clocks and threads for its whole process, so it runs in a separate one.
"""

import re
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.only("sqlite")]

SEEDS = 30


def simulation(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


def counted(*arguments: str) -> list[int]:
    """Return the numbers of statements and of changed rows."""
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


def test_a_seed_gives_the_same_schedule_after_other_schedules() -> None:
    both = counted("--seeds=4")
    assert both == [
        sum(pair) for pair in zip(counted("--seeds=2"), counted("--seeds=2", "--from=2"), strict=True)
    ]


def test_a_missing_guard_is_detected_and_the_command_repeats_it() -> None:
    guard = "expiry out of claim"  # --prove: all of them
    found = simulation("--seeds=1000", f"--without={guard}")
    assert found.returncode == 1, found.stdout + found.stderr
    violation = re.search(r"^seed (\d+): (.*)$", found.stdout, re.MULTILINE)
    assert violation is not None
    assert f'--seed {violation[1]} --without "{guard}"' in found.stdout
    again = simulation(f"--seed={violation[1]}", f"--without={guard}")
    assert again.returncode == 1
    assert violation[2] in again.stdout
