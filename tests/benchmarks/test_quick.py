"""The short form of ``make bench``: it runs, nobody sees an error, and what is counted adds up.

How fast it was says nothing here: other jobs may have the machine. Some contestants of each kind are measured.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spawned import ROOT

pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]

CONTESTANTS = "spread,SKIP LOCKED,BLPOP,sketch"
PARTS = "cycles,start,grant,waiters,keeper,fresh"


def test_a_quick_bench_measures_every_part_and_no_caller_sees_an_error(tmp_path: Path) -> None:
    result, page = tmp_path / "result.json", tmp_path / "page.md"
    marks = (f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n" for name in ("speed", "measured"))
    page.write_text(f"before\n{''.join(marks)}after\n")
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", str(result), "--markdown", str(page)]
    command += ["--contestants", CONTESTANTS, "--parts", PARTS, "--seconds", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    measured: dict[str, Any] = json.loads(result.read_text())
    ours = [one for one in measured["cycles"] if one["contestant"].startswith("resourcepool")]
    assert {one["contestant"] for one in ours} >= {
        "resourcepool, spread",
        "resourcepool, spread without history",
    }
    assert all(one["cycles"] > 0 and one["errors"] == 0 and one["overtaken"]["grants"] for one in ours)
    others = {one["contestant"] for one in measured["cycles"]} - {one["contestant"] for one in ours}
    assert others >= {"SKIP LOCKED", "hand-over sketch", "claim-first sketch"}
    assert all(one["processor"] > 0 and one["statements"] > 1 and one["sessions"] for one in ours)
    if "redis" in measured["servers"]:
        assert "Redis BLPOP" in others
        assert "resourcepool, spread with hints by Redis" in {one["contestant"] for one in ours}
    if "postgres" in measured["servers"]:
        assert "resourcepool, spread with hints by NOTIFY" in {one["contestant"] for one in ours}
    assert all(one["rate"] > 0 and one["steady_rate"] > 0 for one in measured["start"])
    assert all(one["grants"] == 2 and one["p50"] <= one["p99"] for one in measured["grant"])
    assert measured["grant"][0]["contestant"] == "resourcepool, spread"
    assert measured["waiters"]["waiters"] == 50
    assert measured["keeper"]["held_at_the_end"] == measured["keeper"]["leases"] == 1_000
    assert measured["keeper"]["statements_per_beat"] <= 2
    written = page.read_text()
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert "| resourcepool, spread |" in written
    assert "| rows | workers | held for |" in written
    assert "old" not in written
