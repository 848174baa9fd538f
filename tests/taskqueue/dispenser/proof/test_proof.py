"""The short form of the proof; the long one is ``make dispenser TASKS=100000``, also with DATABASE=postgresql.

That the judge objects to a package without its guards is ``make dispenser ARGS=--prove``: what a run meets is chance.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spawned import ROOT


@pytest.mark.alone
@pytest.mark.only("mariadb")
def test_workers_die_and_stand_still_while_their_pool_is_rebuilt_and_every_task_is_done_once(
    tmp_path: Path,
) -> None:
    result = tmp_path / "result.json"
    size = ("--tasks", "1500", "--every", "0.2")
    command = [sys.executable, "-m", "tests.taskqueue.dispenser.proof", *size]
    done = subprocess.run(
        [*command, "--discard", "--json", str(result)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(result.read_text())["figures"]
    assert figures["done"] == figures["tasks"] == 1_500
    assert figures["killed"] > 0
    assert figures["rebuilt"] > 0
    assert figures["looked"] > 0
