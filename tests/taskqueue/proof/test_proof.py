"""The short form of the proof; the long one is ``make streams TASKS=10000``, also with DATABASE=postgresql.

That the tests object to a package without its guards is ``make mutations``: what a run meets is chance.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import everywhere
from tests.servers import ServerMissing
from tests.servers.redis import Redis
from tests.spawned import ROOT

pytestmark = [pytest.mark.alone]


def proof(folder: Path, *words: str) -> dict[str, Any]:
    """Run it on this test's kind of database; it must find nothing wrong."""
    result = folder / "result.json"
    database = everywhere.here()
    command = [sys.executable, "-m", "tests.taskqueue.proof", "--database", database, *words]
    done = subprocess.run(
        [*command, "--discard", "--json", str(result)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    findings: dict[str, Any] = json.loads(result.read_text())
    return findings


@pytest.mark.only("mariadb")
def test_consumers_die_stand_still_and_are_cut_off_and_every_task_is_done_once_and_in_order(
    tmp_path: Path,
) -> None:
    figures = proof(tmp_path, "--tasks", "150", "--lanes", "2", "--every", "1")["figures"]
    assert figures["done"] == figures["tasks"] == 150
    assert figures["writes behind the guard"] >= 150
    with contextlib.suppress(ServerMissing):
        Redis()
        assert figures["broker restarted"]
