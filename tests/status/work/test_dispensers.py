"""The status of a dispenser, and why nothing is handed out."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Bucket, Dispenser, DispenserTask
from resourcepool.status.alarm import AlarmKind
from resourcepool.status.status_reader import MAX_ROWS
from resourcepool.status.work.dispensers import dispenser_alarms, dispensers
from tests.taskqueue.dispenser_rows import bucket, dispenser, failed, tasks

pytestmark = pytest.mark.django_db


def explanation() -> str:
    (one,) = dispensers()
    return one.explanation


def test_each_kind_of_task_and_of_bucket_is_counted() -> None:
    Dispenser.objects.filter(pk=dispenser().pk).update(rebuilt_at=DbLater(-90))
    tasks("a", "b")
    bucket("alice", "c", "d", "e")
    bucket("bob", "f", lasts=-1)
    failed("g")
    tasks("h", state="done", finished_at=DbNow())
    tasks("i", state="done", finished_at=DbLater(-300))
    tasks("j", state="discarded", finished_at=DbNow())
    (one,) = dispensers("reviews")
    assert (one.depth, one.live, one.expired, one.assigned, one.failed, one.done) == (2, 1, 1, 4, 1, 1)
    assert one.rebuilt is not None
    assert one.rebuilt >= 89
    assert one.explanation == ""


def test_the_oldest_is_the_one_that_was_added_first_wherever_it_is_in_the_order() -> None:
    dispenser()
    assert dispensers()[0].oldest is None
    tasks("a", "b", "c")
    DispenserTask.objects.filter(key="b").update(added_at=DbLater(-3_600))
    oldest = dispensers()[0].oldest
    assert oldest is not None
    assert 3_599 <= oldest < 7_200


def test_why_nothing_is_handed_out_is_said_in_a_sentence() -> None:
    dispenser()
    assert explanation() == "it has no unfinished tasks"
    tasks("a")
    assert explanation() == "no worker has a bucket"
    made = bucket("alice", "b")
    assert explanation() == ""
    DispenserTask.objects.filter(key="a").delete()
    assert explanation() == "all tasks are assigned"
    type(made).objects.update(busy_before=DbLater(-1))
    assert (
        explanation()
        == "all tasks are assigned; tasks in expired buckets return when the next worker asks for tasks"
    )
    Dispenser.objects.update(is_paused=True)
    assert explanation().startswith("it is paused; all tasks are assigned; tasks in")


def test_failed_tasks_are_named_where_nothing_else_is_left() -> None:
    dispenser()
    failed("a")
    assert explanation() == "failed tasks to retry or discard: 1"
    failed("b")
    assert explanation() == "failed tasks to retry or discard: 2"
    bucket("alice", "c")
    assert explanation() == "all tasks are assigned; failed tasks to retry or discard: 2"
    tasks("d")
    assert explanation() == ""


def test_an_expired_bucket_without_tasks_does_not_count_as_tasks() -> None:
    dispenser()
    bucket("alice", lasts=-1)
    assert explanation() == "it has no unfinished tasks"


def test_many_dispensers_are_read_with_as_many_statements_as_one(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert dispensers() == []
    for number in range(MAX_ROWS + 1):
        dispenser(f"{number:03d}")
    tasks("a", name="007")
    bucket("alice", "b", "c", name="008")
    with django_assert_num_queries(5):
        found = dispensers()
    assert len(found) == MAX_ROWS
    assert [(one.name, one.depth, one.assigned) for one in found if one.depth or one.live] == [
        ("007", 1, 0),
        ("008", 0, 2),
    ]


def test_no_more_are_counted_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resourcepool.status.work.dispensers.MAX_COUNTED", 2)
    dispenser()
    tasks("a", "b", "c")
    bucket("alice", "d", "e", "f")
    failed("g", "h", "i")
    tasks("j", "k", "l", state="done", finished_at=DbNow())
    (one,) = dispensers()
    assert (one.depth, one.assigned, one.failed, one.done) == (2, 2, 2, 2)


def test_failed_tasks_are_an_alarm_also_while_it_is_paused() -> None:
    dispenser(is_paused=True)
    assert list(dispenser_alarms(dispensers(), 600)) == []
    failed("a", "b")
    (alarm,) = dispenser_alarms(dispensers(), 600)
    assert alarm.kind is AlarmKind.FAILED_TASKS
    assert (
        str(alarm) == "dispenser: reviews: failed for good, waiting for an operator: 2. Retry or discard them."
    )


def test_a_task_that_is_ready_for_too_long_is_an_alarm_unless_it_is_paused() -> None:
    dispenser()
    tasks("a", "b")
    assert list(dispenser_alarms(dispensers(), 600)) == []
    DispenserTask.objects.filter(key="a").update(added_at=DbLater(-7_200))
    (alarm,) = dispenser_alarms(dispensers(), 600)
    assert (alarm.kind, alarm.is_severe) == (AlarmKind.LATE_TASKS, True)
    assert alarm.text == "no task has been handed out for 2 h (no worker has a bucket); ready: 2."
    Dispenser.objects.update(is_paused=True)
    assert list(dispenser_alarms(dispensers(), 600)) == []


def test_tasks_in_expired_buckets_that_nobody_asks_for_are_an_alarm() -> None:
    dispenser()
    bucket("alice", "a", "b", lasts=-1)
    assert list(dispenser_alarms(dispensers(), 600)) == []
    DispenserTask.objects.update(assigned_at=DbLater(-7_200))
    (alarm,) = dispenser_alarms(dispensers(), 600)
    assert alarm.kind is AlarmKind.LATE_TASKS
    assert alarm.text == (
        "no task has been handed out for 2 h (all tasks are assigned; tasks in expired buckets return when the next"
        " worker asks for tasks)."
    )
    bucket("bob")
    assert list(dispenser_alarms(dispensers(), 600)) == [], "bob takes them back when he asks for more"
    Bucket.objects.all().delete()
    assert list(dispenser_alarms(dispensers(), 600)) == []


def test_a_backlog_is_no_alarm_while_tasks_are_handed_out_or_done() -> None:
    dispenser()
    tasks("a", "b")
    DispenserTask.objects.update(added_at=DbLater(-7_200))
    bucket("alice", "c")
    assert list(dispenser_alarms(dispensers(), 600)) == []
    DispenserTask.objects.filter(key="c").update(assigned_at=DbLater(-3_600))  # its worker is stuck
    (alarm,) = dispenser_alarms(dispensers(), 600)
    assert alarm.text == "no task has been handed out for 60 min; ready: 2."
    tasks("d", "e", state="done", finished_at=DbLater(-60))
    tasks("f", state="done", finished_at=DbLater(-900))
    assert list(dispenser_alarms(dispensers(), 600)) == []
    DispenserTask.objects.filter(state="done").update(finished_at=DbLater(-660))
    (alarm,) = dispenser_alarms(dispensers(), 600)
    assert "for 11 min" in alarm.text


def test_a_task_that_was_just_added_to_an_idle_dispenser_is_no_alarm() -> None:
    dispenser()
    tasks("a", state="done", finished_at=DbLater(-7_200))
    tasks("b")
    assert list(dispenser_alarms(dispensers(), 600)) == []
