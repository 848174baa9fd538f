"""The short form of the proof; the long one is ``make queues MINUTES=5``, also with DATABASE=postgresql.

``make queues ARGS=--prove`` shows that the judge objects to a package without its guards; a single run is random.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import everywhere
from tests.spawned import ROOT

pytestmark = [pytest.mark.alone]


def proof(folder: Path) -> dict[str, Any]:
    """Run it on this test's kind of database; it must find nothing wrong."""
    result = folder / "result.json"
    database = everywhere.here()
    command = [sys.executable, "-m", "tests.queues.proof", "--at-any-speed", "--database", database]
    done = subprocess.run(
        [*command, "--discard", "--json", str(result)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    findings: dict[str, Any] = json.loads(result.read_text())
    return findings


@pytest.mark.only("mariadb")
def test_servers_come_go_die_and_stand_still_and_every_queue_is_worked_by_one(tmp_path: Path) -> None:
    figures = proof(tmp_path)["figures"]
    assert figures["pieces of work"] > 0
    assert figures["restarts of the database"] == 1
