"""The end of a test run: the last lines name the failed tests and the line with the reason."""

from dataclasses import asdict
from pathlib import Path

import pytest

from tests.failures import Failure
from tests.outcome import NAMED, Outcome, summary
from tests.run import counted

REPORT = """<testsuites><testsuite tests="3" failures="1" errors="1" skipped="0">
<testcase classname="tests.app.test_one" name="test_fine"/>
<testcase classname="tests.app.test_one" name="test_wrong"><failure message="assert 1 == 2&#10; + where"/></testcase>
<testcase classname="tests.app.test_two" name="test_broken"><error message=""/></testcase>
</testsuite></testsuites>"""
WRONG = Failure(
    "tests/test_one.py::test_wrong", "def test_wrong():\n>   assert\nE   assert 1 == 2\nE    + where"
)


def test_each_test_that_failed_is_named_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    outcome = counted("sqlite", report)
    outcome.failures = [WRONG, Failure("tests/test_two.py::test_broken", "")]

    assert not summary([outcome])

    said = capsys.readouterr().out
    assert "FAILED on sqlite: tests/test_one.py::test_wrong: assert 1 == 2\n" in said
    assert "FAILED on sqlite: tests/test_two.py::test_broken: it says nothing\n" in said
    assert said.endswith("\n1 passed, 2 failed, 0 skipped\n")


def test_of_many_failures_a_bounded_number_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    summary([Outcome("sqlite", failed=NAMED + 3, failures=[WRONG] * (NAMED + 3))])

    said = capsys.readouterr().out
    assert said.count("test_wrong") == NAMED
    assert "FAILED on sqlite: and 3 more\n" in said


def test_an_outcome_that_another_process_has_written_is_the_same() -> None:
    outcome = Outcome("sqlite", failed=1, failures=[WRONG], unsteady=[WRONG])
    assert Outcome.of(asdict(outcome)) == outcome
