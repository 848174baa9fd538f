"""The status of a topic of timers, and why nothing fires."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.db.dialect import DbLater
from resourcepool.models import Timer, TimerNode, Topic
from resourcepool.status.status_reader import MAX_ROWS
from resourcepool.status.work.timers import topics
from tests.app.rows import change, expire, granted

pytestmark = pytest.mark.django_db


def made(**options: Any) -> Topic:
    row: Topic = Topic.objects.create(name="order.timeout", **options)
    return row


def timer(name: str = "a", due_in: float = 3600, topic: str = "order.timeout", **columns: Any) -> Timer:
    moment = timezone.now() + datetime.timedelta(seconds=due_in)
    row: Timer = Timer.objects.create(name=name, topic_id=topic, due_at=moment, busy_before=moment, **columns)
    return row


def node(name: str = "web-1", topics: tuple[str, ...] = ("order.timeout",), **columns: Any) -> TimerNode:
    row: TimerNode = TimerNode.objects.create(name=name, topics=list(topics), **columns)
    granted(row, name)
    return row


def test_an_idle_topic_has_nothing_to_explain() -> None:
    made()
    (one,) = topics()
    assert (one.pending, one.due, one.first, one.late, one.next_in, one.explanation) == (
        0,
        0,
        None,
        0.0,
        None,
        "",
    )


def test_a_timer_whose_moment_is_to_come_says_when() -> None:
    made()
    node()
    timer("later", 7200)
    timer("next", 3600)
    (one,) = topics("order.timeout")
    assert one.first is not None
    assert (one.pending, one.due, one.first.name, one.late, one.explanation) == (2, 0, "next", 0.0, "")
    assert 3500 < (one.next_in or 0) <= 3600


def test_a_due_timer_says_for_how_long_it_could_have_begun() -> None:
    made()
    node()
    timer("old", -600)
    timer("young", -5)
    timer("next", 3600)
    (one,) = topics()
    assert one.first is not None
    assert (one.pending, one.due, one.first.name, one.next_in) == (3, 2, "old", None)
    assert one.late > 599


def test_a_timer_that_waits_to_be_tried_again_is_not_late() -> None:
    made()
    change(timer("a", -600, failures=1), busy_before=DbLater(60))
    (one,) = topics()
    assert (one.due, one.late) == (0, 0.0)


def test_what_a_dead_process_has_left_is_due_and_what_a_live_one_handles_is_not() -> None:
    made()
    for name in ("dead", "live"):
        row = timer(name, -600)
        granted(row, "web-1")
        change(row, state="running")
    expire(Timer.objects.get(name="dead"))
    (one,) = topics()
    assert (one.pending, one.due, one.running, one.first and one.first.name) == (1, 1, 1, "dead")


def test_what_has_ended_is_counted_by_its_outcome_and_recurring_ones_when_they_have_fired() -> None:
    made()
    now, yesterday = timezone.now(), timezone.now() - datetime.timedelta(days=1)
    for name, state, at in (("0", "done", now), ("1", "dead", now), ("2", "dead", yesterday)):
        timer(name, state=state, finished_at=at)
    timer("3", schedule='{"every": 60}', started_at=now)
    timer("4", schedule='{"every": 60}', started_at=now, failures=1)
    timer("5", schedule='{"every": 60}')
    (one,) = topics()
    assert (one.done, one.failed, one.dead, one.pending) == (2, 1, 2, 3)


def test_without_a_node_that_knows_the_topic_it_says_what_to_start() -> None:
    made()
    timer()
    expire(node("dead"))
    (one,) = topics()
    assert (one.nodes, one.refused) == ((), ())
    node("web-1", topics=("other",))
    (one,) = topics()
    assert (one.nodes, one.explanation) == ((), "no live node handles it (web-1: has no handler for it)")


def test_nodes_that_may_not_handle_it_are_named_with_the_reason() -> None:
    made(requires={"zone": "eu"}, least_version="2.10")
    timer()
    node("web-1", labels={"canary": "yes", "zone": "eu"}, version="2.10")
    node("web-2", labels={"zone": "us"}, version="2.10")
    node("web-3", labels={"zone": "eu"}, version="2.9")
    (one,) = topics()
    assert one.explanation == (
        "no live node handles it (web-1: a canary node, not allowed by this topic; web-2: lacks zone=eu;"
        " web-3: its version is 2.9, the topic requires 2.10)"
    )
    node("web-4", labels={"zone": "eu"}, version="2.10.1")
    (one,) = topics()
    assert (one.nodes, one.refused, one.explanation) == (("web-4",), (), "")


def test_many_topics_are_read_with_as_many_statements_as_one(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert topics() == []
    for number in range(MAX_ROWS + 1):
        Topic.objects.create(name=f"{number:03d}")
    timer(topic="007")
    node(topics=("007",))
    with django_assert_num_queries(5):
        found = topics()
    assert len(found) == MAX_ROWS
    assert [(one.name, one.nodes) for one in found if one.pending] == [("007", ("web-1",))]


def test_no_more_are_counted_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resourcepool.status.work.timers.MAX_COUNTED", 2)
    made()
    for number in range(3):
        timer(str(number), -1)
        timer(f"done {number}", state="done", finished_at=timezone.now())
    (one,) = topics()
    assert (one.pending, one.due, one.done) == (2, 2, 2)


def handed(name: str = "a", ago: float = 0.0, **columns: Any) -> None:
    row = timer(name, -ago, holder="web-1", **columns)
    change(row, busy_before=DbLater(40), started_at=DbLater(-ago))


def test_what_was_handed_over_is_counted_with_the_longest_wait() -> None:
    made()
    timer("later")
    handed("a", 30)
    handed("b", 600)
    (one,) = topics()
    assert (one.pending, one.due, one.handed, one.next_in) == (3, 0, 2, None)
    assert one.unclaimed == pytest.approx(600, abs=60)


def test_a_recurring_one_that_is_handed_over_has_not_fired() -> None:
    made()
    handed("a", schedule='{"every": 60}')
    assert (topics()[0].done, topics()[0].handed) == (0, 1)


def test_what_runs_or_waits_for_another_try_was_taken() -> None:
    made()
    timer("a", 10, failures=1, started_at=timezone.now() - datetime.timedelta(seconds=900))
    handed("b", 900, state="running")
    (one,) = topics()
    assert (one.handed, one.unclaimed, one.running, one.first and one.first.is_handed) == (0, 0.0, 1, False)
