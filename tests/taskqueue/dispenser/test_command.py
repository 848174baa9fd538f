"""``resourcepool_dispenser``, and dispensers in ``resourcepool_why`` and ``resourcepool_status``."""

import json
from typing import Any

import pytest
from django.core.management import CommandError

from resourcepool.models import Dispenser, DispenserTask, Stream
from tests.taskqueue.dispenser_rows import bucket, dispenser, failed, states, tasks
from tests.taskqueue.test_commands import said


def run(*words: str) -> str:
    return said("resourcepool_dispenser", *words)


def test_dispensers_are_shown_as_a_table_and_as_json() -> None:
    assert run() == "No dispensers yet: a dispenser is created on first use."
    dispenser()
    tasks("a", "b")
    shown = run()
    assert "reviews: no worker has a bucket" in shown
    bucket("alice", "c")
    (one,) = json.loads(run("show", "reviews", "--json"))["dispensers"]
    assert (one["name"], one["depth"], one["assigned"], one["live"], one["explanation"]) == (
        "reviews",
        2,
        1,
        1,
        "",
    )


def test_tasks_are_added_with_their_scores_and_get_new_ones() -> None:
    assert run("add", "films", "--new", "a", "5", "b", "-1.5") == "new: 2; existing: 0"
    assert run("add", "films", "a", "3", "c", "1e3") == "new: 1; existing: 1"
    assert dict(DispenserTask.objects.values_list("key", "score")) == {"a": 3.0, "b": -1.5, "c": 1000.0}


def test_a_score_may_be_any_finite_number() -> None:
    assert run("add", "films", "--new", "a", "-1e300", "b", "-.5E-3") == "new: 2; existing: 0"
    assert dict(DispenserTask.objects.values_list("key", "score")) == {"a": -1e300, "b": -0.0005}


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
        (("a", "inf"), "KEY SCORE=.* a finite number"),
        (("a", "1", "b" * 201, "1"), "KEY SCORE=.* 1 to 200 printable characters"),
        (("a", "1", "b ", "1"), "KEY SCORE=.* one line of 1 to 200"),
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


@pytest.mark.parametrize("words", [("show",), ("pause",), ("resume",), ("clear", "--yes"), ("revoke", "alice")])
def test_who_mistypes_a_dispenser_is_told_which_there_are(words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="dispensers are created on first use"):
        run(words[0], "rewievs", *words[1:])
    dispenser()
    with pytest.raises(CommandError, match="dispenser='rewievs' is not allowed: it must be one of reviews"):
        run(words[0], "rewievs", *words[1:])
    assert Dispenser.objects.count() == 1


def test_why_says_of_a_dispenser_why_nothing_is_handed_out_also_where_a_stream_has_its_name() -> None:
    dispenser()
    assert "reviews: it has no unfinished tasks" in said("resourcepool_why", "reviews")
    assert (
        json.loads(said("resourcepool_why", "reviews", "--json"))["explanation"] == "it has no unfinished tasks"
    )
    with pytest.raises(CommandError, match="dispenser, topic, channel, election, queue group or lock named"):
        said("resourcepool_why", "rewievs")
    Stream.objects.create(name="reviews")
    assert "standbys" in (shown := said("resourcepool_why", "reviews"))
    assert "reviews: it has no unfinished tasks" in shown
    assert set(json.loads(said("resourcepool_why", "reviews", "--json"))) == {"stream", "dispenser"}


def test_status_tells_its_alarms() -> None:
    dispenser()
    failed("a")
    assert "dispenser: reviews: 1 failed for good and waits for an operator: retry or discard it." in said(
        "resourcepool_status"
    )
