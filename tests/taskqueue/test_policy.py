"""What becomes of a task that was not done."""

from typing import Any

import pytest

from resourcepool.models import Task
from resourcepool.taskqueue.policy import (
    Decision,
    Policy,
    after_crash,
    after_failure,
    after_lost_connection,
    crashes_left,
)

PLAIN = {
    "on_failure": "block",
    "retries": 0,
    "retry_delay": 10.0,
    "max_crashes": 3,
    "lanes": 1,
    "done_kept": 60.0,
    "is_paused": False,
}


def policy(**changes: Any) -> Policy:
    return Policy(**{**PLAIN, **changes})


@pytest.mark.parametrize(
    ("on_failure", "retries", "failures", "state"),
    [
        ("block", 0, 1, "blocked"),
        ("skip", 0, 1, "skipped"),
        ("dead-letter", 0, 1, "dead"),
        ("skip", 2, 1, "ready"),
        ("skip", 2, 2, "ready"),
        ("skip", 2, 3, "skipped"),
        ("skip", 2, 4, "skipped"),
        ("block", 1, 2, "blocked"),
        ("dead-letter", 1_000, 1_000, "ready"),
        ("dead-letter", 1_000, 1_001, "dead"),
    ],
)
def test_a_task_is_tried_again_as_often_as_the_stream_says_and_then_given_up(
    on_failure: str, retries: int, failures: int, state: str
) -> None:
    assert after_failure(policy(on_failure=on_failure, retries=retries), failures).state == state


@pytest.mark.parametrize(
    ("max_crashes", "crashes", "begins_again"), [(3, 0, True), (3, 1, True), (3, 2, False), (1, 0, False)]
)
def test_what_a_lost_connection_broke_begins_again_for_as_long_as_its_deaths_allow(
    max_crashes: int, crashes: int, begins_again: bool
) -> None:
    again = Decision(Task.State.READY, 10.0) if begins_again else None
    assert after_lost_connection(policy(max_crashes=max_crashes), crashes) == again


def test_a_task_that_is_tried_again_waits_and_one_that_is_given_up_does_not() -> None:
    assert after_failure(policy(retries=1), 1).delay == 10
    assert after_failure(policy(retries=1), 2).delay == 0


@pytest.mark.parametrize(
    ("on_failure", "max_crashes", "crashes", "state"),
    [
        ("block", 3, 2, None),
        ("block", 3, 3, "blocked"),
        ("block", 3, 4, "blocked"),
        ("block", 1, 1, "blocked"),
        ("dead-letter", 3, 2, None),
        ("dead-letter", 3, 3, "dead"),
        ("skip", 2, 1, None),
        ("skip", 2, 2, "dead"),
    ],
)
def test_a_task_that_kills_its_process_is_run_a_number_of_times_and_then_put_aside_for_an_operator(
    on_failure: str, max_crashes: int, crashes: int, state: str | None
) -> None:
    # Retries are for failures: they do not save a task from being put aside.
    decision = after_crash(policy(on_failure=on_failure, max_crashes=max_crashes, retries=1_000), crashes)
    assert (None if decision is None else decision.state) == state


@pytest.mark.parametrize(
    ("state", "is_finished"),
    [
        ("ready", False),
        ("running", False),
        ("blocked", False),
        ("done", True),
        ("skipped", True),
        ("dead", True),
        ("discarded", True),
    ],
)
def test_what_is_run_or_blocks_its_stream_is_not_finished(state: Any, is_finished: bool) -> None:
    assert Decision(state).is_finished is is_finished


@pytest.mark.parametrize(
    ("lanes", "crashes", "left"), [(1, 0, 0), (1, 1, 1), (2, 0, 0), (2, 1, 0), (2, 2, 2), (3, 1, 0)]
)
def test_only_the_first_crash_beside_other_lanes_is_forgotten(lanes: int, crashes: int, left: int) -> None:
    assert crashes_left(policy(lanes=lanes), crashes) == left
