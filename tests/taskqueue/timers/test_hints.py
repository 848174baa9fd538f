"""Hints about a timer due soon go to some live nodes that handle its topic, after the commit."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, transaction

from resourcepool import hints
from resourcepool.db.dialect import DbLater
from resourcepool.models import TimerNode
from resourcepool.taskqueue import timers
from resourcepool.taskqueue.timers import nodes


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have hints on, and forget which nodes were known."""
    addresses: list[int] = []
    fakes = {"is_enabled": lambda: True, "send": addresses.append, "address": lambda: 1}
    monkeypatch.setattr(nodes, "hints", SimpleNamespace(**{**vars(hints), **fakes}))
    monkeypatch.setattr(nodes, "_seen", {})
    return addresses


def live(address: int, *topics: str, for_seconds: float = 15) -> None:
    told: dict[str, Any] = {"topics": list(topics), "address": address, "busy_before": DbLater(for_seconds)}
    TimerNode.objects.create(pk=f"node {address}", **told)


def test_two_of_the_live_nodes_that_handle_the_topic_are_told(told: list[int]) -> None:
    for address in (1, 2, 3):
        live(address, "t", "another")
    live(7, "another")
    live(8, "t", for_seconds=-1)
    live(0, "t")
    timers.schedule("a", topic="t", after=1)
    assert len(set(told)) == len(told) == 2
    assert set(told) < {1, 2, 3}


@pytest.mark.parametrize(("after", "is_told"), [(0, True), (1.2, True), (2, False), (3_600, False)])
def test_they_are_told_only_of_what_is_due_before_they_look_by_themselves(
    after: float, is_told: bool, told: list[int]
) -> None:
    live(5, "t")
    timers.schedule("a", topic="t", after=after)
    assert told == [5] * is_told


def test_one_that_is_moved_to_an_earlier_moment_is_told_too_and_others_are_not(told: list[int]) -> None:
    live(5, "t")
    timers.schedule("a", topic="t", after=60)
    timers.reschedule("a", after=120)
    assert told == []
    timers.reschedule("a", after=0.5)
    assert told == [5]
    timers.cancel("a")
    assert timers.reschedule("a", after=0) is timers.Outcome.FIRED
    timers.reschedule("unknown", after=0)
    assert told == [5]


def test_inside_a_transaction_they_are_told_after_its_commit(told: list[int]) -> None:
    live(5, "t")
    with transaction.atomic():
        with transaction.atomic():
            timers.schedule("a", topic="t", after=0)
            timers.reschedule("a", after=0)
        assert told == []
    assert told == [5, 5]
    with pytest.raises(KeyError), transaction.atomic():
        timers.schedule("b", topic="t", after=0)
        raise KeyError
    assert told == [5, 5]


def test_with_hints_off_nobody_is_looked_for(
    told: list[int], monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    live(5, "t")
    timers.schedule("a", topic="t", after=0)
    with django_assert_num_queries(0):
        nodes.notify_after_commit("default", "t")  # known for a second
    monkeypatch.setattr(nodes.hints, "is_enabled", lambda: False)
    nodes._seen.clear()
    with django_assert_num_queries(0):
        nodes.notify_after_commit("default", "t")
    assert told == [5, 5]


def test_a_timer_is_set_though_nobody_can_be_told(
    told: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_address: int) -> None:
        raise OperationalError("no answer to who is alive")

    live(5, "t")
    monkeypatch.setattr(nodes.hints, "send", fail)
    assert timers.schedule("a", topic="t", after=0).is_new
    assert "hints were not sent: no answer to who is alive" in caplog.messages
