"""The reply to a COMMIT is lost: the call returns the result of that transaction, and does nothing twice."""

from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.contrib.dispenser_parts import TaskBucket, TaskPool, TaskRouter
from resourcepool.models import Bucket, Receipt
from resourcepool.taskqueue import TaskDispenser
from resourcepool.taskqueue.dispenser.rebuild import Rebuilt
from tests.concurrency.connection_cutter import Wire
from tests.history.fixtures import events, history  # noqa: F401 (a fixture)
from tests.queues.members import COMMIT
from tests.taskqueue.dispenser.dispensers import dispenser, keys, letters, run_out, states, waiting

pytestmark = pytest.mark.only("mysql", "postgresql")  # SQLite has no reply that could be lost

TWENTY = "abcdefghijklmnopqrst"


def bucket(worker: str = "alice") -> TaskBucket:
    return TaskBucket(worker, pool="reviews")


def begun() -> TaskDispenser:
    """Return a dispenser with four tasks that wait and two that alice has."""
    d = dispenser(letters("uvabcd"))
    d.assign_tasks(2, "alice")
    return d


CALLS: dict[str, tuple[Callable[[TaskDispenser], Any], Any, str]] = {
    "TaskPool.assign": (lambda _: TaskPool("reviews").assign(2), ["a", "b"], "cd"),
    "TaskBucket.pop": (lambda _: bucket().pop(), "u", "abcd"),
    "TaskBucket.add": (lambda _: keys(bucket().add(["a", "u", "x"])), "uxa", "bcd"),
    "TaskBucket.clear": (lambda _: bucket().clear(), 2, "uvabcd"),
    "TaskRouter.clear": (lambda _: TaskRouter("reviews").clear(), 1, "uvabcd"),
    "add": (lambda d: d.add("x", 9), True, "abcdx"),
    "add_many": (lambda d: d.add_many({"x": 9, "a": 1, "y": 9}), 2, "abcdxy"),
    "clear": (lambda d: d.clear(), 4, ""),
    "give_back": (lambda d: d.give_back("alice", d.assign_tasks(2, "alice")[1:]), 1, "vabcd"),
    "give_back all": (lambda d: d.give_back("alice"), 2, "uvabcd"),
    "recreate_task_pool": (
        lambda d: d.recreate_task_pool({"a": 9, "b": 3, "x": 1}),
        Rebuilt(added=1, changed=1, kept=1, retired=2),
        "xba",
    ),
    "revoke": (lambda _: Bucket.objects.filter(name="alice").revoke("eve"), 1, "uvabcd"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_does_once_what_it_says_when_the_reply_to_its_commit_is_lost(wire: Wire, call: str) -> None:
    d = begun()
    send, told, left = CALLS[call]
    if call.startswith("give_back"):
        d.assign_tasks(2, "alice")
    wire.cut_after(COMMIT)
    assert send(d) == told
    assert wire.cuts == 1
    assert waiting() == left


def test_what_was_added_and_taken_out_for_good_at_once_is_not_added_again(wire: Wire) -> None:
    d, taken = dispenser(), []
    wire.cut_after(COMMIT, meanwhile=lambda: taken.extend(TaskPool("reviews").assign(20)))
    assert d.add_many(letters(TWENTY)) == 20
    assert "".join(taken) == TWENTY
    assert states() == {}


def test_what_was_put_into_a_bucket_and_popped_by_a_twin_is_not_put_into_it_again(wire: Wire) -> None:
    popped: list[Any] = []
    dispenser()
    bucket().add(["y"])
    assert bucket().pop() == "y"
    wire.cut_after(COMMIT, meanwhile=lambda: popped.append(bucket().pop()))
    assert keys(bucket().add(["x"])) == "x"
    assert popped == ["x"]
    assert states() == {}


def test_a_commit_that_has_not_arrived_is_sent_again_once(wire: Wire) -> None:
    dispenser(letters("abcd"))
    wire.cut_after("DELETE FROM")  # inside the transaction: the server rolls it back
    assert TaskPool("reviews").assign(2) == ["a", "b"]
    assert wire.cuts == 1
    assert waiting() == "cd"


def test_a_receipt_that_was_removed_meanwhile_is_made_anew(wire: Wire) -> None:
    dispenser(letters("abcdef"))
    Receipt.objects.all().delete()
    wire.cut_after(COMMIT)
    assert TaskPool("reviews").assign(2) == ["a", "b"]
    assert TaskPool("reviews").assign(2) == ["c", "d"]
    assert wire.cuts == 1


def test_an_expired_bucket_is_taken_back_once(wire: Wire) -> None:
    d = begun()
    run_out("alice")
    wire.cut_after(COMMIT)
    assert keys(d.assign_tasks(6, "bob")) == "uvabcd"
    assert wire.cuts == 1
