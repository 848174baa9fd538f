"""Lanes are independent, however many of them wait."""

from typing import Any

import pytest

from resourcepool.models import Stream, Task
from resourcepool.taskqueue import NewTask, consumer, handler, submit, submit_many
from tests.app.rows import change
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, consuming, states, stream, task


def test_very_many_blocked_lanes_hold_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "MIN_PAUSE", consumer.SETTINGS_MAX_AGE + 0.1)  # as after a long rest
    monkeypatch.setattr(consumer, "MAX_PAUSE", consumer.SETTINGS_MAX_AGE + 0.1)
    stream(lanes=2)
    submit_many("oracle", [NewTask("note", key=f"{n}", lane=f"lane {n}") for n in range(300)])
    Task.objects.update(state="blocked")
    submit_many("oracle", [NewTask("note", key=f"after {n}", lane=f"lane {n}") for n in range(300)])
    ran: list[str] = []
    handler("note")(lambda one: ran.append(one.key))
    submit("oracle", "note", key="a1", lane="another")
    submit("oracle", "note", key="a2", lane="another")
    with consuming():
        eventually(lambda: ran == ["a1", "a2"], WITHIN, lambda: ran)
        Task.objects.filter(key="299").retry()
        eventually(lambda: ran == ["a1", "a2", "299", "after 299"], WITHIN, lambda: ran)


def test_of_many_lanes_each_is_in_order_and_is_tried_again_in_time() -> None:
    stream(lanes=4, retries=1, retry_delay=0.2)
    ran: dict[str, list[str]] = {}

    @handler("twice")
    def twice(one: Any) -> bool:
        ran.setdefault(one.lane, []).append(one.key)
        return bool(one.attempt == 2)

    lanes = [f"lane {n}" for n in range(40)]
    submit_many("oracle", [NewTask("twice", key=f"{lane} {n}", lane=lane) for n in range(2) for lane in lanes])
    with consuming():
        eventually(lambda: Task.objects.filter(state="done").count() == 80, WITHIN, lambda: ran)
    assert all(keys == [f"{lane} 0"] * 2 + [f"{lane} 1"] * 2 for lane, keys in ran.items())
    assert task("lane 0 0").attempts == 2


# A consumer that takes over after a crash waits for the stream's lock-delay.


def test_after_a_consumer_that_died_no_task_begins_in_the_lock_delay_and_it_can_be_stopped() -> None:
    row = stream(lock_delay=3_600)
    change(row, elected_term=1)
    handler("note")(lambda _: None)
    submit("oracle", "note", key="a")
    with consuming() as consumer:
        eventually(lambda: Stream.objects.get().elected_term > 1, WITHIN)
        assert consumer.term is None
    assert states() == {"a": "ready"}
