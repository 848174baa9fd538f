"""A task of a type that its consumer has no handler for is left to a consumer that has one, as timers are."""

from typing import Any

import pytest

from resourcepool.models import Stream, Task
from resourcepool.status.work.streams import streams
from resourcepool.taskqueue import Consumer, NewTask, handler, stream_worker, submit, submit_many
from tests.eventually import eventually
from tests.spawned import Spawner
from tests.taskqueue.consumers import WITHIN, consuming, finished, states, stream, task

WHY = "no handler for type 'new' in the consumer's process"


def is_noted(key: str = "a") -> bool:
    return bool(task(key).outcome == WHY)


def test_it_stays_in_its_place_and_fails_nothing_and_runs_when_a_handler_is_there() -> None:
    stream(on_failure="skip")
    ran: list[str] = []
    handler("note")(lambda one: ran.append(one.key))
    submit("oracle", "new", key="a")
    submit("oracle", "note", key="b")
    with consuming():
        eventually(is_noted, WITHIN)
        assert states() == {"a": "ready", "b": "ready"}
        handler("new")(lambda one: ran.append(one.key))
        finished(2)
    assert (ran, task("a").attempts, task("a").failures) == (["a", "b"], 1, 0)


def test_why_it_stands_still_is_said() -> None:
    stream()
    submit("oracle", "new", key="a")
    with consuming() as consumer:
        eventually(lambda: is_noted() and consumer.term, WITHIN)
        eventually(lambda: streams("oracle")[0].leader, WITHIN)
        (found,) = streams("oracle")
    assert f"task a waits for a consumer with a handler for its type: {WHY}" in list(found.reasons())


@pytest.mark.parametrize("most_waits", [stream_worker.MAX_WAITING_LANES, 10])
def test_other_lanes_go_on_however_many_wait(most_waits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_worker, "MAX_WAITING_LANES", most_waits)
    stream(lanes=2)
    handler("note")(lambda _: None)
    submit_many("oracle", [NewTask("new", key=f"new {n}", lane=f"lane {n}") for n in range(60)])
    submit_many("oracle", [NewTask("note", key=f"behind {n}", lane=f"lane {n}") for n in range(60)])
    submit_many("oracle", [NewTask("note", key=f"other {n}", lane=f"other {n}") for n in range(20)])
    with consuming():
        finished(20)
    done = set(Task.objects.exclude(finished_at=None).values_list("key", flat=True))
    assert done == {f"other {n}" for n in range(20)}


def old() -> None:
    handler("note")(lambda _: None)
    Consumer("oracle").run()


def only(kind: str) -> None:
    """Run tasks of one type only; resign for another type again and again."""
    stream_worker.RESIGN_INTERVAL = 0.1
    handler(kind)(lambda one: print("ran", one.key, flush=True))
    Consumer("oracle").run()


def test_two_consumers_that_each_know_one_type_do_all_by_turns(spawn: Spawner) -> None:
    stream()
    for number in range(6):
        submit("oracle", ("x", "y")[number % 2], key=str(number))
    for kind in "xy":
        spawn(only, kind)
    finished(6)
    assert set(states().values()) == {"done"}


def new() -> None:
    handler("note")(lambda _: None)
    handler("new")(lambda one: print("ran", one.key, flush=True))
    Consumer("oracle").run()


def test_a_standby_of_a_newer_version_gets_the_lead_and_runs_it(spawn: Spawner) -> None:
    stream()
    spawn(old)
    eventually(lambda: Stream.objects.get().elected_term, WITHIN)
    later = spawn(new)
    eventually(lambda: streams("oracle")[0].standbys, WITHIN)
    submit("oracle", "new", key="a")
    later.line("ran a")
    finished(1)
    assert (states(), task("a").failures) == ({"a": "done"}, 0)


# Invalid settings written past validation are reported in a sentence, and cause no crash loop.


WRONG: list[dict[str, Any]] = [
    {"lanes": 0},
    {"lanes": 1_000},
    {"on_failure": "x"},
    {"retry_delay": -1.0},
    {"term_ttl": 0.0},
    {"lock_delay": -1.0},
    {"done_kept": -1.0},
    {"max_crashes": 0},
    {"retries": 10_000},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_consumer_says_once_what_is_wrong_and_goes_on_when_it_is_mended(
    wrong: dict[str, Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resourcepool.taskqueue.consumer.SETTINGS_CHECK_EVERY", 0.1)
    stream()
    ((name, value),) = wrong.items()
    right = {name: getattr(Stream.objects.get(), name)}
    Stream.objects.update(**wrong)
    handler("note")(lambda _: None)
    submit("oracle", "note", key="a")
    said = f"{name}={value!r}: "
    (one,) = streams("oracle")
    assert said in one.explanation
    with consuming():
        eventually(lambda: said in caplog.text, WITHIN)
        Stream.objects.update(**right)
        finished(1)
    assert caplog.text.count(said) == 1
    assert streams("oracle")[0].explanation == ""


def test_a_leader_goes_on_with_the_settings_that_were_right(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resourcepool.taskqueue.stream_worker.POLICY_MAX_AGE", 0.1)
    stream(on_failure="skip")
    handler("note")(lambda _: False)
    with consuming() as consumer:
        eventually(lambda: consumer.term, WITHIN)
        first = consumer.term
        submit("oracle", "note", key="a")
        finished(1)
        Stream.objects.update(on_failure="x", lanes=0)
        eventually(lambda: "the former ones stay in effect" in caplog.text, WITHIN)
        submit("oracle", "note", key="b")
        finished(2)
        assert consumer.term is first
    assert states() == {"a": "skipped", "b": "skipped"}


def test_a_task_with_values_past_validation_fails_in_a_sentence() -> None:
    stream(on_failure="skip")
    handler("note")(lambda _: None)
    for key in "ab":
        submit("oracle", "note", key=key)
    Task.objects.filter(key="a").update(params="{no JSON")
    with consuming():
        finished(2)
    assert states() == {"a": "skipped", "b": "done"}
    assert "JSONDecodeError" in Task.objects.get(key="a").outcome
