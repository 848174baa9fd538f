"""What operators do to dispensers, their buckets and tasks."""

from typing import Any

from resourcepool.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue import Done, TaskDispenser
from tests.committed import Statement
from tests.history.fixtures import events, history  # noqa: F401 (a fixture)
from tests.taskqueue.dispenser_rows import bucket, dispenser, fence, states, tasks


def test_freeing_a_bucket_returns_its_tasks_under_new_fences_and_no_others() -> None:
    dispenser()
    alice = bucket("alice", "a", "b")
    bucket("bob", "c")
    assert Bucket.objects.filter(pk=alice.pk).revoke("ann") == 1
    assert Bucket.objects.filter(pk=alice.pk).revoke("ann") == 0
    assert states() == {"a": "ready", "b": "ready", "c": "assigned"}
    assert (fence("a"), fence("b"), fence("c")) == (2, 2, 1)
    assert list(Bucket.objects.values_list("name", flat=True)) == ["bob"]
    assert set(DispenserTask.objects.filter(key__in="ab").values_list("bucket", "expirations")) == {(None, 0)}


def test_a_bucket_is_freed_though_it_has_expired_and_whatever_else_it_had() -> None:
    dispenser()
    alice = bucket("alice", "a", lasts=-1)
    tasks("b", state="done", bucket=alice)
    assert Bucket.objects.all().revoke() == 1
    assert states() == {"a": "ready", "b": "done"}


def test_a_worker_whose_bucket_was_freed_is_told_so_and_the_next_one_gets_its_tasks() -> None:
    reviews = TaskDispenser("reviews")
    reviews.add_many({"a": 1.0, "b": 2.0})
    lost = reviews.assign_tasks(2, "alice")
    Bucket.objects.all().revoke("ann")
    assert not reviews.check_tasks("alice", ["a", "b"])
    assert [task.key for task in reviews.assign_tasks(1, "bob")] == ["a"]
    assert set(reviews.tasks_done("alice", lost).values()) == {Done.STALE}
    assert states() == {"a": "assigned", "b": "ready"}
    assert [task.key for task in reviews.assign_tasks(2, "alice")] == ["b"]


def test_nothing_is_handed_out_while_it_is_paused_and_what_was_can_be_finished() -> None:
    reviews = TaskDispenser("reviews")
    reviews.add_many({"a": 1.0, "b": 2.0})
    had = reviews.assign_tasks(1, "alice")
    Dispenser.objects.all().pause()
    assert reviews.assign_tasks(2, "alice") == had
    assert reviews.assign_tasks(2, "bob") == []
    assert set(reviews.tasks_done("alice", had).values()) == {Done.DONE}
    Dispenser.objects.all().resume()
    assert [task.key for task in reviews.assign_tasks(2, "bob")] == ["b"]


# The events of dispensers and their tasks in the history.


def test_a_task_that_has_expired_too_often_is_told_and_others_of_its_bucket_are_not() -> None:
    dispenser(most_expirations=2)
    bucket("alice", "a", "b", lasts=-1)
    DispenserTask.objects.filter(key="a").update(expirations=1)
    assert [task.key for task in TaskDispenser("reviews").assign_tasks(2, "bob")] == ["b"]
    assert states() == {"a": "failed", "b": "assigned"}
    reason = "reviews/a: its bucket expired 2 times: its workers crashed or took too long"
    assert events(DispenserTask, "holder") == [("failed", "", "", reason)]


def test_what_goes_well_and_each_hand_out_is_told_of_nowhere_and_costs_no_statement(
    settings: Any, statements: list[Statement]
) -> None:
    sent = []
    for is_told in (False, True):
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": is_told}
        reviews = TaskDispenser("reviews")
        reviews.add_many({"a": 1.0, "b": 2.0})
        bucket("eve", "c", lasts=-1)
        statements.clear()
        reviews.tasks_done("alice", reviews.assign_tasks(3, "alice"))
        sent.append([one.sql for one in statements])
        DispenserTask.objects.all().delete()
        Bucket.objects.all().delete()
    assert len(sent[0]) == len(sent[1])
    assert events(DispenserTask, "holder") == events(Dispenser, "holder") == []
