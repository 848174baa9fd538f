"""What is called inside the caller's transaction goes with it, or is refused before anything is done."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.contrib.dispenser_parts import TaskBucket, TaskPool, TaskRouter
from resourcepool.exceptions import ClaimInTransaction
from resourcepool.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue import Assigned, TaskDispenser
from tests.taskqueue.dispenser.dispensers import dispenser, keys, letters, run_out

Call = Callable[[TaskDispenser, list[Assigned]], Any]
REFUSED: dict[str, Call] = {
    "assign_tasks": lambda d, _: d.assign_tasks(3, "alice"),
    "assign nothing": lambda d, _: d.assign_tasks(0, "alice"),
    "TaskBucket.add": lambda _, __: TaskBucket("alice", pool="reviews").add(["c"]),
    "TaskRouter.add": lambda _, __: TaskRouter("reviews").add("dora"),
}
GOES_WITH_IT: dict[str, Call] = {
    "add": lambda d, _: d.add("x", 1),
    "add_many": lambda d, _: d.add_many({"x": 1, "c": -5}),
    "recreate_task_pool": lambda d, _: d.recreate_task_pool({"x": 1, "c": -5}, as_of=d.now()),
    "tasks_done": lambda d, told: d.tasks_done("alice", told[:1]),
    "check_tasks": lambda d, told: d.check_tasks("alice", told),
    "give_back": lambda d, told: d.give_back("alice", told[:1]),
    "give_back all": lambda d, _: d.give_back("alice"),
    "touch": lambda d, _: d.touch("alice"),
    "clear": lambda d, _: d.clear(),
    "size": lambda d, _: d.size(),
    "now": lambda d, _: d.now(),
    "TaskPool.assign": lambda _, __: TaskPool("reviews").assign(1),
    "TaskBucket.pop": lambda _, __: TaskBucket("alice", pool="reviews").pop(),
    "TaskBucket.expire": lambda _, __: TaskBucket("alice", pool="reviews").expire(0),
    "TaskBucket.clear": lambda _, __: TaskBucket("alice", pool="reviews").clear(),
    "TaskBucket.peek_all": lambda _, __: TaskBucket("alice", pool="reviews").peek_all(),
    "TaskRouter.get": lambda _, __: TaskRouter("reviews").get("alice"),
    "TaskRouter.buckets": lambda _, __: TaskRouter("reviews").buckets(),
    "TaskRouter.clear": lambda _, __: TaskRouter("reviews").clear(),
}


def rows() -> list[Any]:
    """Return everything that there is."""
    models = (Dispenser, Bucket, DispenserTask)
    return [row for model in models for row in model._default_manager.order_by("pk").values_list()]


def begun() -> tuple[TaskDispenser, list[Assigned]]:
    """Return a dispenser with two tasks that alice has and two that wait, beside an expired bucket with one."""
    d = dispenser(letters("eabcd"))
    d.assign_tasks(1, "bob")
    told = d.assign_tasks(2, "alice")
    run_out("bob")
    return d, told


@pytest.mark.parametrize("call", REFUSED)
def test_what_would_hand_out_something_is_refused_and_does_nothing(call: str) -> None:
    d, told = begun()
    before = rows()
    with transaction.atomic(), pytest.raises(ClaimInTransaction):
        REFUSED[call](d, told)
    assert rows() == before
    REFUSED[call](d, told)


@pytest.mark.parametrize("call", REFUSED)
def test_it_is_refused_too_where_autocommit_is_off(call: str) -> None:
    d, told = begun()
    transaction.set_autocommit(False)
    try:
        with pytest.raises(ClaimInTransaction):
            REFUSED[call](d, told)
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


@pytest.mark.parametrize("call", GOES_WITH_IT)
def test_all_others_are_undone_by_a_rollback_and_leave_nothing_wrong(call: str) -> None:
    d, told = begun()
    before = rows()
    with transaction.atomic():
        GOES_WITH_IT[call](d, told)
        transaction.set_rollback(True)
    assert rows() == before
    assert not connection.in_atomic_block
    assert d.check_tasks("alice", told)
    assert keys(d.assign_tasks(5, "carol")) == "ecd"


@pytest.mark.parametrize("call", GOES_WITH_IT)
def test_all_others_do_in_a_transaction_what_they_do_outside_of_it(call: str) -> None:
    states = []
    for is_inside in (False, True):
        d, told = begun()
        if is_inside:
            with transaction.atomic():
                said = GOES_WITH_IT[call](d, told)
        else:
            said = GOES_WITH_IT[call](d, told)
        found = DispenserTask.objects.order_by("key").values_list("key", "state", "score")
        buckets = list(Bucket.objects.order_by("name").values_list("name", flat=True))
        states.append((said if call != "now" else "", list(found), buckets))
        for model in (DispenserTask, Bucket, Dispenser):
            model._default_manager.all()._raw_delete("default")
    assert states[0] == states[1]
