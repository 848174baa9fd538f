"""The short form of chaos; the long ones are ``make chaos MINUTES=30``, also with DATABASE=postgresql.

That the judge objects to a package without its guards is ``make proof``: what a short run meets is chance.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.judge import TIMED
from tests.spawned import ROOT

ENOUGH = 250  # acquisitions: it was no idle run; a slow machine takes longer

pytestmark = [pytest.mark.alone]


def chaos(folder: Path, *words: str) -> dict[str, Any]:
    """Run chaos with these words; it must find nothing wrong, though a busy machine may be slow."""
    result = folder / "result.json"
    words = (*words, "--acquisitions", str(ENOUGH))
    command = [sys.executable, "-m", "tests.chaos", "--discard", "--json", str(result), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.exists(), done.stdout + done.stderr
    findings: dict[str, Any] = json.loads(result.read_text())
    broken = {kind for kind, cases in findings["violations"].items() if cases}
    assert broken <= set(TIMED), done.stdout
    return findings


@pytest.mark.only("mariadb")
def test_a_quarter_of_a_minute_of_chaos_on_mariadb_breaks_no_promise(tmp_path: Path) -> None:
    findings = chaos(tmp_path, "--minutes", "0.25")
    assert findings["counted"]["acquisitions"] >= ENOUGH
    assert findings["thrown"]["server killed -9 and restarted"] >= 1
