"""Keys that the factory refuses or converts to another key, and temporary errors of the factory."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from resourcepool.contrib.dispenser_parts import TaskBucket, TaskPool
from resourcepool.taskqueue import Done, TaskDispenser
from tests.taskqueue.dispenser.dispensers import keys, states, task

GOOD, BAD = "7", ("abc", "x", "1.5")
REFUSED: dict[str, str] = dict.fromkeys(BAD, "failed")


def given(good: str = GOOD, bad: tuple[str, ...] = BAD) -> None:
    """Add tasks without a factory, as the command does; the good one is the last."""
    TaskPool("reviews").add_many({key: number for number, key in enumerate([*bad, good])})


def away(key: str) -> Any:
    raise OSError("the shop does not answer")


def pool(factory: Callable[[str], Any]) -> TaskPool:
    return TaskPool("reviews", factory=factory)


def bucket(factory: Callable[[str], Any]) -> TaskBucket:
    return TaskBucket("alice", pool="reviews", factory=factory)


def test_an_assignment_fails_it_and_goes_on_with_the_others() -> None:
    given()
    d = TaskDispenser("reviews", factory=int)
    (told,) = d.assign_tasks(2, "alice")
    assert told.key == 7
    assert states() == {**REFUSED, GOOD: "assigned"}
    assert "factory cannot read its key" in str(task("abc").outcome)
    assert d.check_tasks("alice", [told])
    assert d.tasks_done("alice", [told]) == {7: Done.DONE}


@pytest.mark.parametrize("key", ["007", "+7", "1_0", "٣"])
def test_a_key_of_which_it_makes_another_one_is_failed_because_nobody_could_finish_it(key: str) -> None:
    given(GOOD, (key,))
    d = TaskDispenser("reviews", factory=int)
    told = d.assign_tasks(2, "alice")
    assert [one.key for one in told] == [7]
    assert states() == {key: "failed", GOOD: "assigned"}
    assert "another key" in str(task(key).outcome)
    assert d.tasks_done("alice", [*told, (key, 1)]) == {7: Done.DONE, key: Done.STALE}
    assert bucket(int).add(["8", "08"])[0].key == 8
    assert task("08").state == "failed"


def test_a_factory_that_makes_no_keys_may_make_anything() -> None:
    good = str(UUID(int=7))
    given(good, ("abc",))
    ((key, fence, _),) = TaskDispenser("reviews", factory=UUID).assign_tasks(2, "alice")
    assert key == UUID(good)
    assert states() == {"abc": "failed", good: "assigned"}
    assert TaskDispenser("reviews", factory=UUID).tasks_done("alice", [(good, fence)]) == {key: Done.DONE}


def test_what_a_factory_makes_of_a_key_can_be_handed_in_again_if_it_says_the_key() -> None:
    good = str(UUID(int=7))
    given(good, ())
    d = TaskDispenser("reviews", factory=UUID)
    told = d.assign_tasks(1, "alice")
    assert d.check_tasks("alice", told)
    assert d.give_back("alice", told) == 1
    told = d.assign_tasks(1, "alice")
    assert d.tasks_done("alice", told) == {UUID(int=7): Done.DONE}


@pytest.mark.parametrize("factory", [{GOOD: 7}.__getitem__, lambda key: {1: 7}[len(key)]])
def test_a_key_that_a_factory_does_not_find_is_refused(factory: Callable[[str], Any]) -> None:
    given(GOOD, ("abc",))
    assert [one.key for one in TaskDispenser("reviews", factory=factory).assign_tasks(2, "alice")] == [7]
    assert states() == {"abc": "failed", GOOD: "assigned"}


def test_a_pool_fails_it_and_hands_out_the_others() -> None:
    given()
    assert pool(int).assign(20) == [7]
    assert states() == REFUSED
    assert pool(int).assign(20) == []


def test_a_pool_hands_out_as_many_as_are_asked_for() -> None:
    given()
    assert pool(int).assign(1) == [7]


def test_a_bucket_fails_what_is_put_into_it_and_has_the_others() -> None:
    given()
    assert [one.key for one in bucket(int).add([*BAD, GOOD])] == [7]
    assert states() == {**REFUSED, GOOD: "assigned"}
    assert bucket(int).peek_all() == [7]


@pytest.mark.parametrize("reverse", [False, True])
def test_popping_passes_over_it_and_fails_it(reverse: bool) -> None:
    given()
    TaskDispenser("reviews").assign_tasks(20, "alice")
    assert bucket(int).pop(reverse=reverse) == 7
    assert bucket(int).pop(reverse=reverse) is None
    assert states() == REFUSED


def test_looking_into_a_bucket_shows_what_can_be_read_and_changes_nothing() -> None:
    given()
    TaskDispenser("reviews").assign_tasks(20, "alice")
    assert bucket(int).peek_all() == [7]
    assert set(states().values()) == {"assigned"}


def test_an_end_that_is_told_with_such_a_key_is_answered_under_it() -> None:
    given()
    told = TaskDispenser("reviews").assign_tasks(20, "alice")
    assert TaskDispenser("reviews", factory=int).tasks_done("alice", [*told, ("zz", 1)]) == dict(
        [*((key, Done.DONE) for key in BAD), (7, Done.DONE), ("zz", Done.UNKNOWN)]
    )


CALLS: dict[str, Callable[[], Any]] = {
    "assign_tasks": lambda: TaskDispenser("reviews", factory=away).assign_tasks(1, "bob"),
    "assign": lambda: pool(away).assign(1),
    "add": lambda: bucket(away).add(["7"]),
    "pop": lambda: bucket(away).pop(),
    "peek_all": lambda: bucket(away).peek_all(),
}


@pytest.mark.parametrize("call", CALLS)
def test_after_an_error_that_may_pass_no_task_is_failed_or_lost(call: str) -> None:
    given("7", ("8",))
    (told,) = TaskDispenser("reviews").assign_tasks(1, "alice")
    with pytest.raises(OSError, match="does not answer"):
        CALLS[call]()
    assert set(states()) == {"7", "8"}
    assert set(states().values()) <= {"ready", "assigned"}
    assert TaskDispenser("reviews").tasks_done("alice", [told]) == {"8": Done.DONE}


def test_after_an_error_that_may_pass_nothing_is_done() -> None:
    given("7", ())
    d = TaskDispenser("reviews")
    told = d.assign_tasks(1, "alice")
    with pytest.raises(OSError, match="does not answer"):
        TaskDispenser("reviews", factory=away).tasks_done("alice", told)
    assert states() == {"7": "assigned"}
    assert keys(d.assign_tasks(1, "alice")) == "7"
