"""What a consumer does with tasks in hand when it stops, is replaced, or when one runs for too long."""

from typing import Any

import pytest
from django.db import transaction

from resourcepool.db import timeouts
from resourcepool.db.retry import retrying
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.taskqueue import Consumer, GivenBack, handler, submit
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, Dying, Gate, consuming, states, stream, task


def test_a_handler_that_is_to_stop_may_give_its_task_back() -> None:
    stream()
    began = Gate()

    @handler("long")
    def run(one: Any) -> None:
        began.began.set()
        eventually(lambda: one.is_stopping, WITHIN)
        raise GivenBack

    submit("oracle", "long", key="a")
    with consuming():
        assert began.began.wait(WITHIN)
    assert states() == {"a": "ready"}
    assert (task("a").failures, task("a").crashes) == (0, 0)


def test_a_task_that_runs_for_too_long_has_failed_and_its_process_ends() -> None:
    stream(on_failure="dead-letter")
    gate = Gate()
    handler("gate", max_runtime=0.2)(gate)
    submit("oracle", "gate", key="a")
    assert Dying().said() == "oracle/a: it ran longer than its max_runtime of 0.2 s"
    gate.may_end.set()
    assert states() == {"a": "dead"}
    assert task("a").outcome == "it ran longer than its max_runtime of 0.2 s"


def test_a_task_that_is_cut_off_by_a_stop_is_given_back_and_its_process_has_not_died_in_it() -> None:
    stream(lanes=2)
    gates = {"a": Gate(), "b": Gate()}
    handler("gate")(lambda one: gates[one.key](one))
    for key in gates:
        submit("oracle", "gate", key=key, lane=key)
    dying = Dying(grace=0.1)
    for gate in gates.values():
        assert gate.began.wait(WITHIN)
    dying.runner.stop()
    assert dying.said() == "2 handlers did not end within 0.1 s"
    assert states() == {"a": "ready", "b": "ready"}
    for key, gate in gates.items():
        assert (task(key).attempts, task(key).crashes, task(key).failures) == (1, 0, 0)
        with pytest.raises(LeaseLost), transaction.atomic(), gate.tasks[0].guard():
            pass
        gate.may_end.set()


def test_a_consumer_that_pauses_after_a_failure_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream()
    tried: list[Consumer] = []

    def fail(consumer: Consumer) -> None:
        tried.append(consumer)
        raise DatabaseUnavailable("down")

    monkeypatch.setattr(Consumer, "_serve_one_term", fail)
    monkeypatch.setattr("resourcepool.taskqueue.consumer.PAUSE_AFTER_FAILURE", 3_600)
    with consuming():
        eventually(lambda: tried, WITHIN)
    assert len(tried) == 1


def test_a_consumer_does_not_wait_without_end_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    stream()
    limits: list[float | None] = []

    def noted(*given: Any) -> Any:
        limits.append(current_limit())
        return retrying(*given)

    monkeypatch.setattr("resourcepool.taskqueue.consumer.retrying", noted)
    with consuming() as one:
        eventually(lambda: one.term, WITHIN)
    assert set(limits) == {timeouts.STATEMENT_TIMEOUT}


def current_limit() -> float:
    """Return how many seconds a statement of this thread may take."""
    return timeouts._limits.get()[0]
