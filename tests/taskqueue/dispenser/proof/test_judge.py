"""The checker of a run of a dispenser objects to each broken promise, and only to these."""

import pytest

from tests.concurrency.evidence import Event
from tests.taskqueue.dispenser.proof.judge import (
    KINDS,
    LOST,
    NOBODYS,
    ORDER,
    OVER,
    SHARED,
    TWICE,
    UNEXPECTED,
    Assignment,
    Row,
    examine,
)
from tests.taskqueue.dispenser.proof.terms import MOST, TWINS

BEFORE = [Row(0, 10, "ready", 100), Row(1, 11, "ready", 100)]
AFTER = [Row(0, 10, "done", 102), Row(1, 11, "done", 102)]
TOLD = [Event(1, "asked", 1), Event(2, "told", 1, 0, 20, 1, "worker-1 0:101 1:101")]
GOOD = [*TOLD, Event(3, "done", 1, 0, 0, 0, "worker-1 0:101 1:101")]
STEPS = [Assignment(0, 101)]


def broken(events: list[Event], after: list[Row] = AFTER, steps: list[Assignment] = STEPS) -> list[str]:
    violations = examine(events, BEFORE, after, steps).violations
    return [kind for kind, cases in violations.items() if cases]


def test_a_good_run_is_clean_and_every_kind_was_looked_for() -> None:
    findings = examine(GOOD, BEFORE, AFTER, STEPS)
    assert findings.is_clean
    assert set(findings.violations) == set(KINDS)
    assert (findings.figures["tasks"], findings.figures["done"]) == (2, 2)


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        (Event(4, "done", 2, 0, 0, 0, "worker-2 0:100"), TWICE),
        (Event(4, "told", 2, 0, 20, 3, "worker-2 0:101"), SHARED),
        (Event(4, "holds", 1, 7, 21, 0, "20"), OVER),
        (Event(4, "holds", 1, 7, 6, 0, "5"), OVER),
        (Event(4, "over", 0, 7, 21), OVER),
        (Event(4, "told", 1, 0, 1, 3, "worker-1 0:101 1:101"), OVER),
        (Event(4, "unexpected", 1, text="KeyError"), UNEXPECTED),
    ],
)
def test_a_broken_promise_is_found_in_the_log(events: Event, kind: str) -> None:
    assert broken([*GOOD, events]) == [kind]


@pytest.mark.parametrize(
    ("after", "steps", "kinds"),
    [
        (AFTER[:1], STEPS, [LOST, TWICE]),
        ([AFTER[0], Row(1, 11, "ready", 102)], STEPS, [LOST, TWICE]),
        ([AFTER[0], Row(1, 99, "done", 102)], STEPS, [LOST]),  # deleted, and brought back by a rebuild
        ([AFTER[0], Row(1, 11, "done", 104)], STEPS, [TWICE, NOBODYS]),
        (AFTER, [Assignment(0, 101), Assignment(0, 101)], [TWICE]),
        (AFTER, [Assignment(0, 99)], [TWICE]),
    ],
)
def test_a_broken_promise_is_found_in_the_database(
    after: list[Row], steps: list[Assignment], kinds: list[str]
) -> None:
    assert broken(GOOD, after, steps) == kinds


def test_a_task_that_is_done_and_was_never_assigned_is_found() -> None:
    assert broken(GOOD[:1], AFTER, []) == [NOBODYS]


def test_who_died_before_it_could_note_that_it_was_done_is_excused() -> None:
    assert broken(TOLD) == []


def test_twins_may_both_be_told_of_one_assignment_that_it_is_done() -> None:
    events = [
        Event(number, what, number, 0, 20 * (what == "told"), number - 0.5, f"{TWINS} 0:101 1:101")
        for number, what in ((1, "told"), (2, "told"), (3, "done"), (4, "done"))
    ]
    assert broken(events) == []


MANY = [Row(key, key, "ready", 0) for key in range(1, 7)]  # none of them gets other scores
DONE = [Row(key, key, "done", 2) for key in range(1, 7)]


def passed_over(events: list[Event]) -> bool:
    return bool(examine(events, MANY, DONE, []).violations[ORDER])


def call(began: float, ended: float, who: int, *keys: int) -> list[Event]:
    text = " ".join(f"{key}:1" for key in keys)
    return [Event(began, "asked", who), Event(ended, "told", who, 0, MOST, began, f"worker-{who} {text}")]


def test_a_lower_score_that_nobody_had_locked_is_passed_over() -> None:
    assert passed_over([*call(1, 2, 1, 5, 6), *call(3, 4, 2, 1, 2, 3, 4)])


def test_in_order_nothing_is_passed_over() -> None:
    assert not passed_over([*call(1, 2, 1, 1, 2), *call(3, 4, 2, 3, 4, 5, 6)])


@pytest.mark.parametrize(
    "other",
    [
        [Event(1.5, "asked", 3)],  # suspended
        [Event(0.5, "asked", 3), Event(1.5, "killed", 3)],
        [Event(0.5, "asked", 3), Event(0.9, "killed", 3)],  # the server may not know yet
        call(1.2, 1.4, 3),
    ],
)
def test_what_somebody_else_may_have_had_locked_is_excused(other: list[Event]) -> None:
    assert not passed_over([*other, *call(1, 2, 1, 5, 6), *call(3, 4, 2, 1, 2, 3, 4)])


@pytest.mark.parametrize("other", [call(0.2, 0.8, 3), call(2.2, 2.8, 3), [Event(2.5, "asked", 3)]])
def test_a_call_before_or_after_is_no_excuse(other: list[Event]) -> None:
    assert passed_over([*other, *call(1, 2, 1, 5, 6), *call(3, 4, 2, 1, 2, 3, 4)])


def test_only_as_many_are_excused_as_a_call_can_have() -> None:
    before = [Row(key, key, "ready", 0) for key in range(100, 100 + 2 * MOST)]
    others = [Event(0.5, "asked", 3), *call(1, 2, 1, 139)]
    rest = [Event(3, "told", 2, 0, MOST, 2.5, "worker-2 " + " ".join(f"{key}:1" for key in range(100, 139)))]
    found = examine([*others, *rest], before, [], []).violations[ORDER]
    assert len(found) == 1


def test_what_has_been_assigned_before_is_not_known_to_have_been_ready() -> None:
    again = [Event(3, "told", 2, 0, MOST, 3, "worker-2 1:3 2:3 3:3 4:3")]
    assert not passed_over([*call(1, 2, 1, 5, 6), *again])
