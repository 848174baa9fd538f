"""The events of dispensers and their tasks in the history."""

from typing import Any

from resourcepool.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue import TaskDispenser
from tests.committed import Statement
from tests.history.fixtures import events, history  # noqa: F401 (a fixture)
from tests.taskqueue.dispenser_rows import bucket, dispenser, states, tasks


def test_pausing_and_freeing_is_told_with_who_did_it_and_whose_bucket_it_was() -> None:
    dispenser()
    bucket("alice", "a")
    Dispenser.objects.all().pause("ann")
    Dispenser.objects.all().resume("bob")
    assert Bucket.objects.all().revoke("ann") == 1
    assert Bucket.objects.all().revoke("ann") == 0
    assert events(Dispenser, "holder") == [
        ("paused", "", "ann", ""),
        ("resumed", "", "bob", ""),
        ("revoked", "alice", "ann", ""),
    ]
    assert events(Bucket, "holder") == []


def test_a_task_that_has_expired_too_often_is_told_and_others_of_its_bucket_are_not() -> None:
    dispenser(most_expirations=2)
    bucket("alice", "a", "b", lasts=-1)
    DispenserTask.objects.filter(key="a").update(expirations=1)
    assert [task.key for task in TaskDispenser("reviews").assign_tasks(2, "bob")] == ["b"]
    assert states() == {"a": "failed", "b": "assigned"}
    reason = "reviews/a: its bucket expired 2 times: its workers crashed or took too long"
    assert events(DispenserTask, "holder") == [("failed", "", "", reason)]


def test_what_operators_do_to_tasks_is_told_with_who_and_why() -> None:
    dispenser()
    tasks("a")
    DispenserTask.objects.all().discard("ann", "typo")
    DispenserTask.objects.all().retry("bob")
    assert events(DispenserTask, "holder") == [
        ("discarded", "", "ann", "reviews/a: typo"),
        ("retried", "", "bob", "reviews/a"),
    ]


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
