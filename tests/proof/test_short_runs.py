"""The short form of each proof; the long ones are ``make chaos MINUTES=30``, ``make streams TASKS=10000`` and so on.

That the checkers object to a package without its guards is ``make proof``, and ``ARGS=--prove`` of the others: what a
short run meets is chance.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import everywhere
from tests.chaos.judge import TIMED
from tests.servers import ServerMissing
from tests.servers.redis import Redis
from tests.spawned import ROOT

ENOUGH = 250  # acquisitions: it was no idle run; a slow machine takes longer

pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]


def findings(module: str, words: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """Run the proof with these words on this test's kind of database; return its exit code and the result."""
    result = folder / "result.json"
    command = [sys.executable, "-m", module, "--database", everywhere.here(), *words.split()]
    command += ["--discard", "--json", str(result)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.exists(), done.stdout + done.stderr
    return done.returncode, json.loads(result.read_text())


def broker_restarts() -> dict[str, int]:
    """Return how often a Redis is restarted at least, if there is one."""
    try:
        Redis()
    except ServerMissing:
        return {}
    return {"broker restarted": 1}


@pytest.mark.parametrize(
    ("module", "words", "at_least"),
    [
        ("tests.queues.proof", "--at-any-speed", {"pieces of work": 1, "restarts of the database": 1}),
        (
            "tests.taskqueue.proof",
            "--tasks 150 --lanes 2 --every 1",
            {"done": 150, "writes behind the guard": 150, **broker_restarts()},
        ),
        (
            "tests.taskqueue.timers.proof",
            "--timers 300 --over 5 --every 1",
            {"done": 300, "killed": 1, "restarted": 1},
        ),
        (
            "tests.taskqueue.dispenser.proof",
            "--tasks 1500 --every 0.2",
            {"done": 1_500, "killed": 1, "rebuilt": 1, "looked": 1},
        ),
        (
            "tests.locks.proof",
            "--seconds 5 --every 0.5",
            {"killed": 1, "items consumed": 1, "held: lock-0": 1, "held: semaphore": 1, "held: catalogue": 1},
        ),
        (
            "tests.locks.channels.proof",
            "--messages 150 --every 0.5",
            {"messages": 150, "restarted": 1, "killed or stopped": 1},
        ),
    ],
    ids=["queues", "streams", "timers", "dispenser", "locks", "channels"],
)
def test_processes_and_their_database_fail_and_no_promise_is_broken(
    tmp_path: Path, module: str, words: str, at_least: dict[str, int]
) -> None:
    code, found = findings(module, words, tmp_path)
    broken = {
        kind: cases for kind, cases in found["violations"].items() if cases and kind not in found["excused"]
    }
    assert (code, broken) == (0, {})
    figures = found["figures"]
    figures["killed or stopped"] = figures["killed"] + figures["stopped"]
    assert {name: figures.get(name, 0) for name in at_least if figures.get(name, 0) < at_least[name]} == {}


def test_a_quarter_of_a_minute_of_chaos_breaks_no_promise(tmp_path: Path) -> None:
    _, found = findings("tests.chaos", f"--minutes 0.25 --acquisitions {ENOUGH}", tmp_path)
    broken = {kind: cases for kind, cases in found["violations"].items() if cases and kind not in TIMED}
    assert broken == {}  # but what a busy machine may be late with
    assert found["figures"]["acquisitions"] >= ENOUGH
    assert found["figures"]["server killed -9 and restarted"] >= 1
