"""The example of streams does what it says."""

import subprocess
import sys

import pytest

from tests.spawned import ROOT


@pytest.mark.timeout(300)
def test_the_tasks_of_a_killed_consumer_are_run_by_the_next_one_in_order() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.streams"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "step-0 once more: known" in done.stdout
    assert "kill -9" in done.stdout
    lines = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("  step-")]
    assert lines == [[f"step-{number}", "done"] for number in range(12)]
