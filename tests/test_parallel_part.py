"""A parallel part of the test run: its output is shown at its end, its result counts, nothing is left behind."""

import os
import sys

import pytest

from tests.outcome import Outcome
from tests.parallel_part import beside

PASSES = """
import sys
from pathlib import Path
from tests.parallel_part import written
from tests.outcome import Outcome
print("hello from beside", flush=True)
written(Outcome("mariadb", passed=7, skipped=1, seconds=2.5), Path(sys.argv[1]))
"""
HANGS = "import time; time.sleep(600)"


def test_what_it_says_is_shown_at_its_end_and_what_came_out_counts(capfd: pytest.CaptureFixture[str]) -> None:
    with beside("mariadb", [sys.executable, "-c", PASSES]) as part:
        print("from the others", flush=True)
        assert part.outcome() == Outcome("mariadb", passed=7, skipped=1, seconds=2.5)
    assert capfd.readouterr().out == "from the others\nhello from beside\n"


def test_one_that_ends_without_an_outcome_has_failed(capfd: pytest.CaptureFixture[str]) -> None:
    with beside("mariadb", [sys.executable, "-c", "raise SystemExit('no server')"]) as part:
        assert part.outcome() == Outcome("mariadb", failed=1)
    assert "no server" in capfd.readouterr().out


def test_it_does_not_outlive_the_others() -> None:
    with pytest.raises(KeyboardInterrupt), beside("mariadb", [sys.executable, "-c", HANGS]) as part:
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(part._process.pid, 0)
