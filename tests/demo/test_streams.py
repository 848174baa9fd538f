"""The example of streams does what it says."""

from tests.demo.examples import printed_by


def test_the_tasks_of_a_killed_consumer_are_run_by_the_next_one_in_order() -> None:
    printed = printed_by("streams")
    assert "step-0 once more: known" in printed
    assert "kill -9" in printed
    lines = [line.split()[:2] for line in printed.splitlines() if line.startswith("  step-")]
    assert lines == [[f"step-{number}", "done"] for number in range(12)]


# The example of a dispenser does what it says.


def test_the_tasks_of_a_killed_worker_are_done_by_another_one() -> None:
    printed = printed_by("dispenser")
    assert "kill -9 alice" in printed
    lines = [line.split()[:2] for line in printed.splitlines() if line.startswith("  film-")]
    assert lines == [[f"film-{number:02d}", "done"] for number in range(12)]


# The example of a lock does what it says.


def test_the_lock_of_a_killed_process_goes_to_the_one_that_waits() -> None:
    printed = printed_by("locks")
    killed, has_it = printed.splitlines()
    assert killed.startswith("kill -9 node-")
    assert has_it.endswith("has it, with a greater fence")
    assert killed.split()[2].strip(",") != has_it.split()[0]


# The example of queues does what it says.


def test_servers_share_queues_come_go_and_are_killed() -> None:
    printed = printed_by("queues")
    assert "B is killed" in printed
    assert "presumed dead: no heartbeat for 3 s" in printed


# The example of timers does what it says.


def test_the_timer_of_a_killed_node_is_handled_by_another_one_and_a_cancelled_one_by_none() -> None:
    printed = printed_by("timers")
    assert "kill -9 node-" in printed
    lines = [line.split()[:2] for line in printed.splitlines() if line.startswith("  order-")]
    assert lines == [["order-41", "done"], ["order-42", "done"], ["order-43", "cancelled"]]
    assert '"previous_end": "expired"' in printed
