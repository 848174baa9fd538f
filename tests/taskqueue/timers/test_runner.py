"""A node handles due timers, stores the results, and leaves other timers to other nodes."""

import datetime
from typing import Any

import pytest
from django.db import transaction

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import BadOption, ClaimInTransaction
from resourcepool.models import Timer, TimerNode
from resourcepool.taskqueue import timers
from resourcepool.taskqueue.timers import TimerRunner
from tests.app.rows import change, expire, now
from tests.eventually import eventually
from tests.taskqueue.consumers import Gate
from tests.taskqueue.timers.runners import WITHIN, due, handling, over, states, timer, topic


def test_a_handler_gets_what_was_given_and_how_late_it_is(seen: list[Any]) -> None:
    due("order-42", payload={"order": 42, "名": "表"}, ago=5)
    with handling():
        over(1)
    (one,) = seen
    assert (one.name, one.topic, one.payload, one.attempt) == ("order-42", "t", {"order": 42, "名": "表"}, 1)
    assert (one.previous_end, one.missed) == ("", 0)
    assert one.due_at == timer("order-42").due_at
    assert one.late_by >= datetime.timedelta(seconds=4)
    assert states() == {"order-42": "done"}


def test_no_timer_is_begun_before_its_moment(seen: list[Any]) -> None:
    for number in range(20):
        timers.schedule(f"n{number}", topic="t", after=number / 40)
    with handling():
        over(20)
    assert all(one.late_by >= datetime.timedelta(0) for one in seen)


def test_a_topic_without_a_handler_here_is_left_alone(seen: list[Any]) -> None:
    due("theirs", topic="unknown here")
    due("mine")
    with handling():
        over(1)
    assert states() == {"mine": "done", "theirs": "pending"}


def test_several_nodes_handle_each_timer_once(seen: list[Any]) -> None:
    for number in range(60):
        due(f"n{number}")
    with handling(), handling():
        over(60)
    assert sorted(one.name for one in seen) == sorted(f"n{number}" for number in range(60))


def test_a_failed_timer_is_tried_again_and_told_so_and_then_set_aside() -> None:
    topic(retries=2, retry_delay=0)
    ran: list[Any] = []

    @timers.on("t")
    def fail(one: Any) -> None:
        ran.append((one.attempt, one.previous_end))
        raise ValueError("disk\nfull")

    due()
    with handling():
        over(1)
    assert ran == [(1, ""), (2, "clean"), (3, "clean")]
    assert (timer().state, timer().outcome, timer().failures) == ("dead", "ValueError: disk full", 3)


@pytest.mark.parametrize(("holder", "end", "crashes"), [("a dead process", "expired", 1), ("", "released", 0)])
def test_what_a_process_left_is_begun_again_and_told_how_and_only_a_crash_is_counted(
    holder: str, end: str, crashes: int, seen: list[Any]
) -> None:
    topic(max_crashes=2)
    due()
    change(timer(), state="running", holder=holder, fence=7, attempts=1, busy_before=DbLater(-1))
    with handling():
        over(1)
    assert [(one.attempt, repr(one.previous_end)) for one in seen] == [(2, repr(end))]
    assert (timer().crashes, timer().state) == (crashes, "done")


def test_a_timer_that_kills_its_process_again_and_again_is_set_aside(seen: list[Any]) -> None:
    topic(max_crashes=2)
    due()
    change(timer(), state="running", holder="dead", crashes=1, attempts=2, busy_before=DbLater(-1))
    with handling():
        over(1)
    assert not seen
    assert (timer().state, timer().outcome) == (
        "dead",
        "its process crashed or froze while handling it (crashes: 2)",
    )


def test_one_that_sets_itself_again_in_its_handler_is_not_ended_by_its_end() -> None:
    ran: list[Any] = []

    @timers.on("t")
    def again(one: Any) -> None:
        ran.append(one)
        if len(ran) == 1:
            with transaction.atomic(), one.guard():
                timers.schedule("a", topic="t", after=0)

    due()
    with handling():
        over(1)
    assert [one.attempt for one in ran] == [1, 1]


def test_a_paused_topic_begins_nothing(seen: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resourcepool.taskqueue.timers.runner.TOPICS_MAX_AGE", 0.05)
    topic(is_paused=True)
    topic("u")
    timers.on("u")(seen.append)
    due("waits")
    due("not", topic="u")
    with handling():
        over(1)
        assert [one.name for one in seen] == ["not"]
        topic(is_paused=False)
        over(2)


def test_a_node_that_the_topic_does_not_want_leaves_it_alone(seen: list[Any]) -> None:
    topic("eu", requires={"zone": "eu"})
    topic("new", least_version="2.10")
    for name in ("eu", "new"):
        timers.on(name)(seen.append)
        due(name, topic=name)
    due()
    with handling(labels={"zone": "us"}, version="2.9"):
        over(1)
    with handling(labels={"canary": "yes", "zone": "eu"}, version="2.10"):
        eventually(TimerNode.objects.exists, WITHIN)
    assert states() == {"a": "done", "eu": "pending", "new": "pending"}
    with handling(labels={"zone": "eu"}, version="2.10"):
        over(3)


def test_timely_ones_come_before_those_of_an_outage(seen: list[Any]) -> None:
    for number in range(30):
        due(f"old{number}", ago=7_200)
    due("new", ago=1)
    with handling(late_rate=10, threads=1):
        eventually(lambda: len(seen) > 5, WITHIN)
        assert seen[0].name == "new"
        over(31)


def test_a_node_is_known_while_it_lives(seen: list[Any]) -> None:
    topic()
    with handling(labels={"zone": "eu"}, version="2.10"):
        eventually(lambda: TimerNode.objects.filter(topics=["t"]).exists(), WITHIN)
        node = TimerNode.objects.get()
        assert (node.labels, node.version) == ({"zone": "eu"}, "2.10")
        assert node.address
        assert node.busy_before > now()
    assert not TimerNode.objects.exists()


def test_a_finished_timer_is_deleted_where_none_is_kept(seen: list[Any]) -> None:
    topic(done_kept=0)
    due()
    with handling():
        eventually(lambda: not Timer.objects.exists(), WITHIN)


def test_an_end_whose_row_is_locked_is_written_later() -> None:
    gate = Gate()
    timers.on("t")(gate)
    due()
    with handling():
        assert gate.began.wait(WITHIN)
        with transaction.atomic():
            list(Timer.objects.select_for_update())
            gate.may_end.set()
        over(1)
    assert len(gate.tasks) == 1


def test_what_a_dead_process_left_is_nobodys_after_the_ttl_only(seen: list[Any]) -> None:
    due()
    change(timer(), state="running", holder="somebody", attempts=1, busy_before=DbLater(60))
    due("b")
    with handling():
        over(1)
        assert len(seen) == 1
        expire(timer())
        over(2)


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 0},
        {"threads": 1.5},
        {"labels": {"a": 1}},
        {"version": "x" * 51},
        {"late_rate": 0},
        {"late_rate": float("nan")},
        {"late_rate": True},
        {"late_rate": datetime.timedelta(seconds=10)},
        {"grace": -1},
    ],
)
def test_what_is_not_allowed_is_refused(options: Any) -> None:
    with pytest.raises(BadOption):
        TimerRunner(**options)


def test_it_does_not_run_in_a_transaction() -> None:
    with transaction.atomic(), pytest.raises(ClaimInTransaction):
        TimerRunner().run()
