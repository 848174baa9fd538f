"""Failed tests run once more: repeated failures are faults, others are named as unsteady."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import rerun
from tests.failures import Failure
from tests.outcome import SHOWN, TOLERATED, Outcome, summary
from tests.rerun import MAX_RERUNS, run_again
from tests.run import run_pytest

UNSTEADY = Failure("tests/test_one.py::test_unsteady", "def test_unsteady():\nE   assert 1 == 2")
BROKEN = Failure("tests/test_one.py::test_broken", "def test_broken():\nE   assert 3 == 4")
# Fails the first time, and passes the second.
SOURCE = """
from pathlib import Path

def test_unsteady():
    print("it was", "here")
    seen = Path(__file__).with_name("seen")
    was_there, _ = seen.exists(), seen.touch()
    assert was_there

def test_broken():
    assert 3 == 4

def test_fine():
    pass
"""


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "var" / "unsteady.txt"
    monkeypatch.setattr(rerun, "UNSTEADY", file)
    return file


def test_a_test_that_passes_in_the_second_run_is_named_as_unsteady_and_its_failure_is_kept(
    tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_some.py").write_text(SOURCE)

    def run(part: str, names: Sequence[str]) -> Outcome:
        own = ["-c", "pyproject.toml", "-p", "no:cacheprovider"]
        return run_pytest(
            part, {"DATABASE_URL": "sqlite:///:memory:"}, [*own, "--rootdir", str(tmp_path), *names]
        )

    outcome = run("sqlite", ["--numprocesses=1", str(tmp_path / "test_some.py")])
    assert (outcome.passed, outcome.failed, len(outcome.failures)) == (1, 2, 2)
    run_again([outcome], lambda part, names: run(part, [str(tmp_path / name) for name in names]))

    assert (outcome.passed, outcome.failed) == (2, 1)
    assert [failure.nodeid for failure in outcome.failures] == ["test_some.py::test_broken"]
    assert [failure.nodeid for failure in outcome.unsteady] == ["test_some.py::test_unsteady"]
    assert not summary([outcome])
    printed = capsys.readouterr().out
    assert "FAILED on sqlite: test_some.py::test_broken: assert 3 == 4\n" in printed
    assert "UNSTEADY on sqlite: test_some.py::test_unsteady" in printed
    assert "sqlite test_some.py::test_unsteady" in kept.read_text()
    assert "it was here" in kept.read_text()


def test_a_run_in_which_few_tests_are_unsteady_is_green(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome("sqlite", passed=9, failed=1, failures=[UNSTEADY])
    run_again([outcome], lambda part, names: Outcome(part, passed=len(names)))
    assert summary([outcome])
    assert capsys.readouterr().out.endswith("\n10 passed, 0 failed, 0 skipped\n")


def test_a_run_in_which_more_are_unsteady_is_red_whatever_their_parts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = Outcome("sqlite", passed=9, unsteady=[UNSTEADY] * TOLERATED)
    other = Outcome("mariadb", passed=9, unsteady=[UNSTEADY])
    assert summary([one])
    assert not summary([one, other])
    assert f"{TOLERATED + 1} tests are unsteady" in capsys.readouterr().out


def test_a_test_that_failed_and_could_not_be_torn_down_counts_as_one_that_passes() -> None:
    outcome = Outcome("sqlite", passed=9, failed=2, failures=[UNSTEADY, UNSTEADY])
    run_again([outcome], lambda part, names: Outcome(part, passed=len(names)))
    assert (outcome.passed, outcome.failed) == (10, 0)


@pytest.mark.parametrize(
    "second", [Outcome("sqlite", left_out="no server"), Outcome("sqlite", failed=1), Outcome("sqlite")]
)
def test_what_cannot_be_run_again_has_failed(second: Outcome, kept: Path) -> None:
    outcome = Outcome("sqlite", passed=9, failed=1, failures=[BROKEN])
    run_again([outcome], lambda part, names: second)
    assert (outcome.failed, outcome.failures, outcome.unsteady) == (1, [BROKEN], [])
    assert not kept.exists()


def test_many_failures_are_not_run_again() -> None:
    failures = [Failure(f"tests/test_one.py::test_{number}", "no") for number in range(MAX_RERUNS + 1)]
    outcome = Outcome("sqlite", failed=len(failures), failures=failures)
    run_again([outcome], lambda part, names: pytest.fail("run again"))
    assert outcome.failed == MAX_RERUNS + 1


def test_of_a_long_failure_the_last_lines_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    summary([Outcome("sqlite", passed=1, unsteady=[Failure("tests/test_one.py::test_a", text)])])
    printed = capsys.readouterr().out
    assert "    line 99\n" in printed
    assert printed.count("    line") == SHOWN
