"""What becomes of a task that was not done."""

from typing import Any

import pytest

from resourcepool.models import Stream, Task, Topic
from resourcepool.taskqueue.policy import GIVEN_BACK, End, Result, after_crash, end_of

FAILED = Result("", "no")


def policy(**changes: Any) -> Stream:
    return Stream(**{"retries": 0, **changes})


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
    end = end_of(policy(on_failure=on_failure, retries=retries), FAILED, failures - 1, 0)
    assert (end.state, end.outcome, end.counts) == (state, "no", (failures, 0))


@pytest.mark.parametrize(
    ("max_crashes", "crashes", "begins_again"), [(3, 0, True), (3, 1, True), (3, 2, False), (1, 0, False)]
)
def test_what_a_lost_connection_broke_begins_again_for_as_long_as_its_deaths_allow(
    max_crashes: int, crashes: int, begins_again: bool
) -> None:
    end = end_of(policy(max_crashes=max_crashes), FAILED._replace(is_disconnected=True), 0, crashes)
    again = End(Task.State.READY, "no", 10.0, (0, crashes + 1))
    assert end == (again if begins_again else End(Task.State.BLOCKED, "no", 0.0, (1, crashes)))


def test_a_task_that_is_tried_again_waits_and_one_that_is_given_up_does_not() -> None:
    assert end_of(policy(retries=1), FAILED, 0, 0).delay == 10
    assert end_of(policy(retries=1), FAILED, 1, 0).delay == 0


@pytest.mark.parametrize(
    ("result", "end"),
    [
        (Result("7"), End(Task.State.DONE, "7")),
        (FAILED, End(Task.State.READY, "no", 10.0, (3, 0))),
        (GIVEN_BACK, End(Task.State.READY, "")),
        (Result("away", is_given_back=True, delay=5.0), End(Task.State.READY, "away", 5.0, (2, 0))),
    ],
)
def test_a_handler_that_ends_clears_a_single_crash_and_only_one_that_failed_counts(
    result: Result, end: End
) -> None:
    assert end_of(policy(lanes=2, retries=5), result, 2, 1) == end


def test_what_is_done_is_deleted_if_nothing_is_kept() -> None:
    assert end_of(policy(done_kept=0.0), Result(""), 0, 0) == End(None, "")


def test_counts_that_did_not_change_are_not_written() -> None:
    assert end_of(policy(), Result("away", is_given_back=True), 2, 0) == End("ready", "away")


def test_a_timer_ends_in_the_states_of_its_topic_and_each_retry_waits_twice_as_long() -> None:
    topic = Topic(retries=2)
    assert [end_of(topic, FAILED, failures, 0) for failures in (0, 1, 2)] == [
        End("pending", "no", 10.0, (1, 0)),
        End("pending", "no", 20.0, (2, 0)),
        End("dead", "no", 0.0, (3, 0)),
    ]


def test_a_result_that_the_database_refuses_is_written_in_ascii() -> None:
    assert Result("名", "é").ascii_escaped() == Result(r"\u540d", r"\u00e9")
    assert (same := Result("a")).ascii_escaped() is same


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
    assert after_crash(policy(on_failure=on_failure, max_crashes=max_crashes, retries=1_000), crashes) == state


@pytest.mark.parametrize(
    ("lanes", "crashes", "left"), [(1, 0, 0), (1, 1, 1), (2, 0, 0), (2, 1, 0), (2, 2, 2), (3, 1, 0)]
)
def test_only_the_first_crash_beside_other_lanes_is_forgotten(lanes: int, crashes: int, left: int) -> None:
    assert policy(lanes=lanes).crashes_left(crashes) == left
