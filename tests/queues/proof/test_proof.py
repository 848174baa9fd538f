"""The short forms of the proof; the long one is ``make queues MINUTES=5``, also with DATABASE=postgresql."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.queues.proof.prove import CASES, objections
from tests.spawned import ROOT

DATABASES = {"mysql": "mariadb"}
ENOUGH = 1_000  # pieces of work, also on a slow machine: it was no idle run
NOTICED_SOON = "a hand-over waits for the work in hand"  # ``make queues ARGS=--prove`` tries them all

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def proof(folder: Path) -> dict[str, Any]:
    """Run it on this test's kind of database; it must find nothing wrong."""
    result = folder / "result.json"
    database = DATABASES.get(connection.vendor, connection.vendor)
    command = [sys.executable, "-m", "tests.queues.proof", "--database", database]
    done = subprocess.run(
        [*command, "--discard", "--json", str(result)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    findings: dict[str, Any] = json.loads(result.read_text())
    return findings


@pytest.mark.only("mysql")
def test_servers_come_go_die_and_stand_still_and_every_queue_is_worked_by_one(tmp_path: Path) -> None:
    figures = proof(tmp_path)["figures"]
    assert figures["pieces of work"] > ENOUGH
    assert figures["restarts of the database"] == 1


@pytest.mark.only("sqlite")
def test_the_judge_objects_when_a_hand_over_does_not_wait_for_the_work_in_hand() -> None:
    case = next(mutation for mutation in CASES if mutation.name == NOTICED_SOON)
    # Whether a piece of work is in hand just when its queue is asked for is chance.
    assert any(objections(case, CASES[case], "sqlite", seconds=0) for _ in range(4))
