"""The example of a dispenser does what it says."""

import subprocess
import sys

import pytest

from tests.spawned import ROOT


@pytest.mark.timeout(300)
def test_the_tasks_of_a_killed_worker_are_done_by_another_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.dispenser"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill -9 alice" in done.stdout
    lines = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("  film-")]
    assert lines == [[f"film-{number:02d}", "done"] for number in range(12)]
