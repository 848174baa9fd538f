"""The short form of the proof; the long one is ``python -m tests.locks.channels.proof``, also on PostgreSQL."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spawned import ROOT

pytestmark = [pytest.mark.alone]


@pytest.mark.only("mariadb")
def test_processes_die_and_their_database_is_away_and_all_read_everything_in_one_order(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    size = ("--messages", "150", "--every", "0.5")
    command = [sys.executable, "-m", "tests.locks.channels.proof", *size, "--discard", "--json", str(result)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(result.read_text())["figures"]
    assert figures["messages"] >= 150
    assert figures["killed"] + figures["stopped"] > 0
    assert figures["restarted"] == 1
