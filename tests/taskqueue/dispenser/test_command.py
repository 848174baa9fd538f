"""``resourcepool_dispenser``, and dispensers in ``resourcepool_why`` and ``resourcepool_status``."""

from typing import Any

import pytest
from django.core.management import CommandError

from resourcepool.models import Dispenser, DispenserTask
from tests.taskqueue.dispenser_rows import bucket, dispenser, states, tasks
from tests.taskqueue.test_commands import said


def run(*words: str) -> str:
    return said("resourcepool_dispenser", *words)


def test_tasks_are_added_with_their_scores_and_get_new_ones() -> None:
    assert run("add", "films", "--new", "a", "5", "b", "-1.5") == "new: 2; existing: 0"
    assert run("add", "films", "a", "3", "c", "1e3", "d", "-.5E-3") == "new: 2; existing: 1"
    assert dict(DispenserTask.objects.values_list("key", "score")) == {
        "a": 3.0,
        "b": -1.5,
        "c": 1000.0,
        "d": -0.0005,
    }


def test_adding_to_a_name_that_is_mistyped_makes_no_dispenser() -> None:
    dispenser()
    allowed = "dispenser='reveiws' is not allowed: it must be one of reviews; --new creates it"
    with pytest.raises(CommandError, match=allowed):
        run("add", "reveiws", "a", "5")
    assert [one.name for one in Dispenser.objects.all()] == ["reviews"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("a",), "KEY SCORE='a' .*a score after each key"),
        (("a", "1", "a", "2"), "each key once"),
        (("a", "b"), "KEY SCORE='b' .*a finite number"),
        (("a", "nan"), "KEY SCORE=.* a finite number"),
        (("a", "1", "b" * 201, "1"), "KEY SCORE=.* 1 to 200 printable characters"),
    ],
)
def test_what_cannot_be_added_is_refused_with_a_sentence_and_nothing_is(words: Any, named: str) -> None:
    with pytest.raises(CommandError, match=named):
        run("add", "films", "--new", *words)
    assert not DispenserTask.objects.exists()


def test_clearing_removes_what_is_ready_once_somebody_confirms_it() -> None:
    dispenser()
    tasks("a", "b")
    bucket("alice", "c")
    with pytest.raises(CommandError, match=r"Remove all ready tasks \(2\)\? Not a terminal"):
        run("clear", "reviews")
    assert run("clear", "reviews", "--yes") == "removed: 2"
    assert states() == {"c": "assigned"}
