"""A consumer runs the tasks of its stream in order, one after another, and stores their results."""

import datetime
import json
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from resourcepool.exceptions import BadOption
from resourcepool.models import Stream, Task
from resourcepool.taskqueue import Consumer, handler, submit
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, Gate, consuming, finished, states, stream, task


def test_tasks_are_run_in_the_order_of_their_time_and_then_of_their_arrival() -> None:
    stream()
    ran: list[str] = []
    handler("note")(lambda one: ran.append(one.key))
    now = timezone.now()
    submit("oracle", "note", key="third", task_time=now)
    submit("oracle", "note", key="first", task_time=now - datetime.timedelta(hours=1))
    submit("oracle", "note", key="fourth", task_time=now)
    submit("oracle", "note", key="second", task_time=now - datetime.timedelta(minutes=1))
    with consuming():
        finished(4)
    assert ran == ["first", "second", "third", "fourth"]
    assert set(states().values()) == {"done"}


def test_a_handler_gets_what_was_submitted_and_its_result_is_kept() -> None:
    stream()
    got: list[Any] = []

    @handler("CreateTableSpace")
    def create(one: Any) -> Any:
        got.append((one.stream, one.key, one.type, one.params, one.attempt))
        return {"size": one.params["size"]}

    submit("oracle", "CreateTableSpace", {"size": 8000, "名": "表"}, key="req-42")
    with consuming():
        finished(1)
    assert got == [("oracle", "req-42", "CreateTableSpace", {"size": 8000, "名": "表"}, 1)]
    assert json.loads(task("req-42").outcome) == {"size": 8000}


def test_what_is_submitted_while_it_waits_is_run() -> None:
    stream()
    handler("note")(lambda _: None)
    with consuming():
        eventually(lambda: Stream.objects.get().elected_term, WITHIN)
        submit("oracle", "note")
        finished(1)
        submit("oracle", "note")
        finished(2)


def test_only_one_consumer_runs_tasks_and_the_next_follows_when_it_stops() -> None:
    stream()
    gate = Gate()
    handler("gate")(gate)
    submit("oracle", "gate", key="a")
    submit("oracle", "gate", key="b")
    with consuming() as first:
        assert gate.began.wait(WITHIN)
        gate.began.clear()
        with consuming():
            first.stop()
            gate.may_end.set()
            finished(2)
    one, other = gate.tasks
    assert one.lease.fence < other.lease.fence


def test_a_failed_task_is_tried_again_and_the_tasks_after_it_wait() -> None:
    stream(retries=2, retry_delay=0, on_failure="skip")
    ran: list[str] = []

    @handler("fail")
    def fail(one: Any) -> None:
        ran.append(f"{one.key}{one.attempt}")
        raise ValueError("disk\nfull")

    handler("note")(lambda one: ran.append(one.key))
    submit("oracle", "fail", key="a")
    submit("oracle", "note", key="b")
    with consuming():
        finished(2)
    assert ran == ["a1", "a2", "a3", "b"]
    assert states() == {"a": "skipped", "b": "done"}
    assert task("a").outcome == "ValueError: disk full"


def test_tasks_of_different_lanes_run_side_by_side_and_those_of_one_in_order() -> None:
    stream(lanes=2)
    gate = Gate()
    handler("gate")(gate)
    ran: list[str] = []
    handler("note")(lambda one: ran.append(one.params["key"]))
    submit("oracle", "gate", key="a1", lane="a")
    for lane, key in [("a", "a2"), *(("b", f"b{number}") for number in range(40))]:
        submit("oracle", "note", {"key": key}, key=key, lane=lane)
    with consuming():
        finished(40)
        assert ran == [f"b{number}" for number in range(40)]
        assert states()["a2"] == "ready"
        gate.may_end.set()
        finished(42)


def test_a_guarded_write_commits_while_the_attempt_is_the_current_one() -> None:
    stream()

    @handler("write")
    def write(one: Any) -> None:
        one.progress("half way")
        with transaction.atomic(), one.guard():
            Stream.objects.filter(pk="oracle").update(retry_delay=99)

    submit("oracle", "write", key="a")
    with consuming():
        finished(1)
    assert states() == {"a": "done"}
    assert Stream.objects.get().retry_delay == 99


def test_the_tasks_of_a_leader_that_died_are_run_again_first() -> None:
    stream()
    submit("oracle", "note", key="a")
    submit("oracle", "note", key="b")
    Task.objects.filter(key="a").update(state="running", term=1, fence=7, attempts=1)
    ran: list[str] = []
    handler("note")(lambda one: ran.append(f"{one.key}{one.attempt}"))
    with consuming():
        finished(2)
    assert ran == ["a2", "b1"]
    assert task("a").crashes == 1


def test_a_stream_that_does_not_exist_is_refused_by_name() -> None:
    stream("known")
    with pytest.raises(BadOption, match="stream='unknown' is not allowed"):
        Consumer("unknown").run()
    with pytest.raises(BadOption, match="one of known"):
        submit("unknown", "note")


def test_the_log_names_the_settings_once_and_each_term(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "resourcepool.taskqueue.consumer")
    stream(retries=3)
    for _ in range(2):
        with consuming() as consumer:
            eventually(lambda consumer=consumer: consumer.term, WITHIN)
    said = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    settings = [
        line
        for line in said
        if line.startswith("stream oracle: on_failure=block, retries=3, retry_delay=10.0,")
    ]
    assert len(settings) == 2
    assert [line.rpartition(" ")[0] for line in said if line not in settings] == [
        "stream oracle: leading, term"
    ] * 2
