"""The short form of the proof; the long one is ``python -m tests.taskqueue.timers.proof``, also on PostgreSQL."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spawned import ROOT

pytestmark = [pytest.mark.alone]


@pytest.mark.only("mariadb")
def test_nodes_die_and_their_database_is_away_and_every_timer_is_handled(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    size = ("--timers", "300", "--over", "5", "--every", "1")
    command = [sys.executable, "-m", "tests.taskqueue.timers.proof", *size, "--discard", "--json", str(result)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(result.read_text())["figures"]
    assert figures["done"] == figures["timers"] == 300
    assert figures["killed"] > 0
    assert figures["restarted"] == 1
