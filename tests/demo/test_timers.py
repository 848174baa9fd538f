"""The example of timers does what it says."""

from tests.demo.examples import printed_by


def test_the_timer_of_a_killed_node_is_handled_by_another_one_and_a_cancelled_one_by_none() -> None:
    printed = printed_by("timers")
    assert "kill -9 node-" in printed
    lines = [line.split()[:2] for line in printed.splitlines() if line.startswith("  order-")]
    assert lines == [["order-41", "done"], ["order-42", "done"], ["order-43", "cancelled"]]
    assert '"previous_end": "expired"' in printed
