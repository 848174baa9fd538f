"""The status of a dispenser, as it is read."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Dispenser, DispenserTask
from resourcepool.status.status_reader import MAX_ROWS
from resourcepool.status.work.dispensers import dispensers
from tests.taskqueue.dispenser_rows import bucket, dispenser, failed, tasks

pytestmark = pytest.mark.django_db


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


def test_it_is_quiet_since_a_task_was_last_assigned_or_done() -> None:
    dispenser()
    assert dispensers()[0].quiet is None
    bucket("alice", "a", "b")
    DispenserTask.objects.update(assigned_at=DbLater(-7_200))
    assert dispensers()[0].quiet == pytest.approx(7_200, abs=600)
    tasks("c", state="done", finished_at=DbLater(-1_800))
    tasks("d", state="done", finished_at=DbLater(-9_000))
    assert dispensers()[0].quiet == pytest.approx(1_800, abs=600)


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
