"""The tasks of a stream or a dispenser, and the timers of a topic, as an operator lists them from a shell."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.models import Stream, Task, Timer, Topic
from tests.app.rows import change
from tests.management.command_runner import run
from tests.taskqueue.dispenser_rows import bucket, dispenser, failed, tasks

pytestmark = pytest.mark.django_db
HOURS = datetime.timedelta(hours=3)
SECRET = '{"secret": "s3cret"}'
LISTS = [
    ("streams", "tasks", "oracle"),
    ("dispenser", "tasks", "reviews"),
    ("topics", "timers", "order.timeout"),
]


@pytest.fixture(autouse=True)
def _work() -> None:
    """Five of each kind; "c" has failed for good."""
    oracle = Stream.objects.create(name="oracle")
    topic = Topic.objects.create(name="order.timeout")
    dispenser()
    now = timezone.now()
    for key in "edabc":
        over: dict[str, Any] = (
            {"state": "dead", "finished_at": now, "outcome": "disk full"} if key == "c" else {}
        )
        Task.objects.create(stream=oracle, key=key, type="note", params=SECRET, **over)
        Timer.objects.create(topic=topic, name=key, payload=SECRET, due_at=now, busy_before=now + HOURS, **over)
    tasks("e", "d", "a")
    bucket("alice", "b")
    failed("c", outcome="expired 5 times")


def keys(ran: Any, called: str) -> list[str]:
    return [one["name" if called == "timers" else "key"] for one in ran.json[called]]


@pytest.mark.parametrize(("command", "called", "place"), LISTS)
def test_they_are_listed_by_key_a_page_at_a_time(command: str, called: str, place: str) -> None:
    first = run(command, called, place, "--limit", 2, "--json")
    assert (keys(first, called), first.json["after"]) == (["a", "b"], "b")
    rest = run(command, called, place, "--after", "b", "--json")
    assert (keys(rest, called), rest.json["after"]) == (["c", "d", "e"], "")
    shown = run(command, called, place, "--limit", 2).out
    assert shown.endswith(f"\n\nThere are more: {called} {place} --after b\n")
    assert [line[:1] for line in shown.splitlines()[1:3]] == ["a", "b"]
    assert run(command, called, place, "--after", "e").out == "There are none.\n"


@pytest.mark.parametrize(("command", "called", "place"), LISTS)
def test_those_in_one_state_are_listed_with_what_became_of_them(command: str, called: str, place: str) -> None:
    state = "failed" if command == "dispenser" else "dead"
    ran = run(command, called, place, "--state", state, "--json")
    assert keys(ran, called) == ["c"]
    outcome = ran.json[called][0]["outcome"]
    assert outcome in ("disk full", "expired 5 times")
    assert outcome in run(command, called, place, "--state", state).out
    assert "--state" in run(command, called, place, "--state", "nonsense").err


@pytest.mark.parametrize(("command", "called", "place"), LISTS)
def test_no_list_shows_parameters_or_payloads(command: str, called: str, place: str) -> None:
    assert "s3cret" not in run(command, called, place).all + run(command, called, place, "--json").all


@pytest.mark.parametrize(("command", "called", "place"), LISTS)
def test_what_does_not_exist_is_refused_with_the_names_that_do(command: str, called: str, place: str) -> None:
    assert f"one of {place}" in run(command, called, "nix").err
    assert f"one of {place}" in run(command, called, "n\x07ix").err
    assert "a whole number from 1 to 200" in run(command, called, place, "--limit", 0).err
    assert "a whole number from 1 to 200" in run(command, called, place, "--limit", 201).err


def test_a_task_says_when_it_is_tried_and_who_runs_it() -> None:
    change(Task.objects.get(key="a"), busy_before=timezone.now() + HOURS)
    change(Task.objects.get(key="b"), state="running", holder="web-1", attempts=2)
    lines = run("streams", "tasks", "oracle").out.splitlines()
    assert lines[0].split() == [
        "key",
        "type",
        "state",
        "attempts",
        "submitted",
        "next",
        "attempt",
        "holder",
        "outcome",
    ]
    assert "in 3 h" in lines[1]
    assert lines[2].split()[2:4] == ["running", "2"]
    assert "web-1" in lines[2]


def test_a_task_of_a_dispenser_says_who_has_it() -> None:
    assert [one["worker"] for one in run("dispenser", "tasks", "reviews", "--json").json["tasks"]] == [
        *(None, "alice"),
        *[None] * 3,
    ]
    assert "alice" in run("dispenser", "tasks", "reviews", "--state", "assigned").out


def test_a_timer_says_when_it_fires_and_how_often() -> None:
    change(Timer.objects.get(name="a"), busy_before=timezone.now() - HOURS, schedule='{"every": 300.0}')
    lines = run("topics", "timers", "order.timeout").out.splitlines()
    assert "due for 3 h" in lines[1]
    assert "every 5 min" in lines[1]
    assert "in 3 h" in lines[2]
    assert [
        one["due_in"] is None for one in run("topics", "timers", "order.timeout", "--json").json["timers"]
    ] == [
        *(False, False),
        True,
        *(False, False),
    ]


def test_a_task_that_was_never_tried_is_due_since_it_was_submitted() -> None:
    Task.objects.filter(key="a").update(submitted_at=timezone.now() - HOURS)
    line = next(line for line in run("streams", "tasks", "oracle").out.splitlines() if line.startswith("a "))
    assert "due for 3 h" in line
