"""The checker of the streams objects to each broken promise, and only to these."""

import pytest

from tests.chaos.test_judge import log
from tests.taskqueue.proof.judge import KINDS, LATE, LEADERS, LOST, ORDER, TWICE, UNEXPECTED, Written, examine

# Each line: second, what, worker, task, fence, since, term


def found(text: str, written: list[Written], tasks: int, done: int) -> dict[str, int]:
    findings = examine(log(text), written, tasks, done)
    return {kind: len(cases) for kind, cases in findings.violations.items() if cases}


def test_nothing_happened_and_nothing_is_wrong() -> None:
    findings = examine([], [], 0, 0)
    assert findings.is_clean
    assert set(findings.violations) == set(KINDS)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1 began 1 7 1 0 5\n2 began 1 7 2 0 5", TWICE),
        ("1 began 1 7 1 0 5\n2 wrote 1 7 1 0 5\n3 began 1 7 2 0 5", TWICE),
        ("1 began 1 7 1 0 5\n2 began 2 8 1 0 6\n3 began 1 9 1 0 5", LEADERS),
        ("1 began 1 7 1 0 5\n2 began 2 8 1 0 6\n3 wrote 1 7 1 0 5", LEADERS),
        ("1 began 1 7 1 0 10\n2 began 2 8 1 0 9", LEADERS),
        ("1 unexpected 1 0 0 0 ValueError", UNEXPECTED),
    ],
)
def test_a_broken_promise_is_seen_in_the_log(text: str, kind: str) -> None:
    assert found(text, [], 0, 0) == {kind: 1}


@pytest.mark.parametrize(
    ("written", "done", "kind"),
    [
        ([Written(0, 0, 1)], 1, LOST),
        ([Written(0, 0, 1), Written(0, 1, 1)], 1, LOST),
        ([Written(0, 0, 1)], 2, LOST),
        ([Written(0, 1, 1), Written(0, 0, 1)], 2, ORDER),
        ([Written(0, 0, 1), Written(0, 1, 1), Written(0, 0, 3)], 2, ORDER),
        ([Written(0, 0, 3), Written(0, 0, 1), Written(0, 1, 1)], 2, LATE),
    ],
)
def test_a_broken_promise_is_seen_in_what_was_written(written: list[Written], done: int, kind: str) -> None:
    assert set(found("", written, 2, done)) == {kind}


@pytest.mark.parametrize(
    "text",
    [
        # The attempt failed, for example because its guard could not be asked: the same term tries again.
        "1 began 1 7 1 0 5\n2 failed 1 7 1 0 5\n3 began 1 7 3 0 5",
        # The next leader begins it again.
        "1 began 1 7 1 0 5\n2 killed 1\n4 began 2 7 3 0 6\n5 wrote 2 7 3 0 6",
        # The next leader begins another task; the old one still reports a failure.
        "1 began 1 7 1 0 5\n2 began 2 8 1 0 6\n3 failed 1 7 1 0 5",
    ],
)
def test_what_has_an_excuse_is_let_pass(text: str) -> None:
    assert not found(text, [], 0, 0)


def test_a_task_may_write_again_under_a_higher_fence_and_lanes_have_orders_of_their_own() -> None:
    written = [Written(1, 1, 1), Written(0, 0, 1), Written(0, 0, 3), Written(0, 2, 1)]
    assert not found("", written, 3, 3)


def test_what_there_was_to_be_judged_is_counted() -> None:
    text = "1 began 1 7 1 0 5\n2 killed 1\n3 stopped 2\n4 broker_killed 0\n4 began 3 7 3 0 6\n5 wrote 3 7 3 0 6"
    findings = examine(log(text), [Written(0, 0, 3)], 1, 1)
    assert findings.figures == {
        "tasks": 1,
        "done": 1,
        "terms": 2,
        "begun again": 1,
        "broker restarted": 1,
        "killed": 1,
        "stopped": 1,
        "writes behind the guard": 1,
    }
