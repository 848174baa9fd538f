"""What befalls a consumer in the middle of a task: it loses the lead, its database, or its temper."""

import json
from typing import Any

import pytest

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.models import Stream, Task
from resourcepool.taskqueue import handler, submit
from resourcepool.taskqueue.consumer import StreamWorker
from tests.app.rows import steal
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, Dying, Gate, consuming, finished, states, stream


def take_the_lead(_: pytest.MonkeyPatch) -> None:
    steal(Stream.objects.get(), holder="the next one")


def cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: Any, **__: Any) -> Any:
        raise DatabaseUnavailable("no route to host")

    monkeypatch.setattr("resourcepool.taskqueue.consumer.retrying", unreachable)
    monkeypatch.setattr("resourcepool.leases.keeper.renew_together", unreachable)


@pytest.mark.parametrize("lose", [take_the_lead, cut_off])
def test_a_lead_that_is_lost_in_mid_task_ends_the_process_though_the_handler_goes_on(
    lose: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    stream(term_ttl=1)
    handler("gate")(gate)
    submit("oracle", "gate", key="a")
    dying = Dying()
    assert gate.began.wait(WITHIN)
    lose(monkeypatch)
    try:
        assert "is lost" in dying.said()
    finally:
        gate.may_end.set()
    monkeypatch.undo()
    assert states() == {"a": "running"}, "the next leader finds it"


def test_a_task_that_runs_for_too_long_ends_the_process_also_when_that_cannot_be_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream(lanes=2, retries=5)
    slow, other = Gate(), Gate()
    handler("slow", max_runtime=0.5)(slow)
    handler("other")(other)
    submit("oracle", "slow", key="a", lane="a")
    submit("oracle", "other", key="b", lane="b")
    dying = Dying()
    assert slow.began.wait(WITHIN)
    assert other.began.wait(WITHIN)

    def unavailable(*_: Any) -> Any:
        raise DatabaseUnavailable("just now")

    monkeypatch.setattr(StreamWorker, "_guarded", unavailable)
    try:
        assert "ran longer than its max_runtime" in dying.said()
    finally:
        slow.may_end.set()
        other.may_end.set()
    assert set(states().values()) == {"running"}, "the next leader finds them"
    assert len(other.tasks) == 1


def test_an_error_of_the_consumer_itself_never_frees_its_stream_while_a_task_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream()
    gate = Gate()
    handler("gate")(gate)
    submit("oracle", "gate", key="a")
    dying = Dying()
    assert gate.began.wait(WITHIN)

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(StreamWorker, "exchange", broken)
    try:
        assert dying.said() == "ZeroDivisionError, while 1 handler ran"
    finally:
        gate.may_end.set()


def test_parameters_that_cannot_be_read_are_a_failure_of_their_task_alone() -> None:
    stream(on_failure="skip")
    handler("note")(lambda _: None)
    submit("oracle", "note", key="deep")
    submit("oracle", "note", key="broken")
    submit("oracle", "note", key="good", params={"n": 1})
    Task.objects.filter(key="deep").update(params=json.dumps({"n": 1})[:-2] + "[" * 50_000 + "]" * 50_000 + "}")
    Task.objects.filter(key="broken").update(params="{")
    with consuming():
        finished(3)
    assert states() == {"deep": "skipped", "broken": "skipped", "good": "done"}
    assert eventually(lambda: Stream.objects.get().elected_term, WITHIN)


def test_a_leader_whose_turns_wait_for_a_lock_in_vain_goes_on_leading(monkeypatch: pytest.MonkeyPatch) -> None:
    stream()
    tried: list[float] = []

    def locked(leading: StreamWorker, **_: Any) -> float:
        trust = leading._term._trust
        tried.append(trust.until)
        trust.due_at = 0.0  # as after a third of the term
        raise DatabaseUnavailable("lock wait timeout exceeded")

    def skipped(*_: Any) -> bool:
        return False

    monkeypatch.setattr("resourcepool.leases.keeper.renew_together", skipped)
    monkeypatch.setattr("resourcepool.taskqueue.worker_loop.PAUSE_AFTER_FAILURE", 0.01)
    monkeypatch.setattr(StreamWorker, "exchange", locked)
    with consuming():
        eventually(lambda: len(tried) > 2, WITHIN)
    assert tried[2] > tried[1] > tried[0]
