"""The example of queues does what it says."""

import subprocess
import sys

import pytest

from tests.spawned import ROOT


@pytest.mark.timeout(300)
def test_servers_share_queues_come_go_and_are_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.queues"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "B is killed" in done.stdout
    assert "was judged dead: no heartbeat for 3 s" in done.stdout
