"""The example of streams does what it says."""

from tests.demo.examples import printed_by


def test_the_tasks_of_a_killed_consumer_are_run_by_the_next_one_in_order() -> None:
    printed = printed_by("streams")
    assert "step-0 once more: known" in printed
    assert "kill -9" in printed
    lines = [line.split()[:2] for line in printed.splitlines() if line.startswith("  step-")]
    assert lines == [[f"step-{number}", "done"] for number in range(12)]
