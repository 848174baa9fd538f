"""The example of a dispenser does what it says."""

from tests.demo.examples import printed_by


def test_the_tasks_of_a_killed_worker_are_done_by_another_one() -> None:
    printed = printed_by("dispenser")
    assert "kill -9 alice" in printed
    lines = [line.split()[:2] for line in printed.splitlines() if line.startswith("  film-")]
    assert lines == [[f"film-{number:02d}", "done"] for number in range(12)]
