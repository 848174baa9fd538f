"""The example of timers does what it says."""

import subprocess
import sys

import pytest

from tests.spawned import ROOT


@pytest.mark.timeout(300)
def test_the_timer_of_a_killed_node_is_handled_by_another_one_and_a_cancelled_one_by_none() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.timers"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill -9 node-" in done.stdout
    lines = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("  order-")]
    assert lines == [["order-41", "done"], ["order-42", "done"], ["order-43", "cancelled"]]
    assert '"previous_end": "expired"' in done.stdout
