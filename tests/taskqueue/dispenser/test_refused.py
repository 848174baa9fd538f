"""What a dispenser refuses: names, limits, times, and bare keys."""

from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import BadOption, ClaimInTransaction
from resourcepool.taskqueue import Done, TaskDispenser
from tests.taskqueue.dispenser.dispensers import (
    dispenser,
    keys,
    letters,
    states,
    waiting,
)


@pytest.mark.parametrize(
    "task",
    ["a", 101, ("a",), ("a", "b"), ("a", None), ("a", True), {"a": 1}, None, ("a", 1, 2, 3)],
)
def test_bare_keys_are_refused_because_a_fence_is_needed(task: Any) -> None:
    d = dispenser(letters("ab"))
    d.assign_tasks(2, "alice")
    for call in (d.tasks_done, d.give_back):
        with pytest.raises(BadOption, match="fence"):
            call("alice", [task])
    assert "assigned" in states().values()


def test_one_task_under_two_fences_is_refused() -> None:
    with pytest.raises(BadOption, match="one fence"):
        dispenser().tasks_done("alice", [("a", 1), ("a", 2)])


@pytest.mark.parametrize("limit", [-1, 10_001, 1.0, "3", True, None, float("nan")])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(BadOption, match="limit"):
        dispenser().assign_tasks(limit, "alice")


@pytest.mark.parametrize("worker", ["", " a", "a ", "a\nb", "x" * 201, None, 3, b"a"])
def test_a_worker_without_a_proper_name_is_refused(worker: Any) -> None:
    d = dispenser()
    for call in (
        lambda: d.assign_tasks(1, worker),
        lambda: d.check_tasks(worker, []),
        lambda: d.tasks_done(worker, []),
        lambda: d.give_back(worker),
        lambda: d.touch(worker),
    ):
        with pytest.raises(BadOption, match="worker"):
            call()


@pytest.mark.parametrize("worker", ["x" * 200, "😀" * 200, "%s%%", "O'Brien \\ \"", "名"])
def test_every_name_of_one_line_has_a_bucket_of_its_own(worker: str) -> None:
    d = dispenser({worker: 1, worker[:-1] + "!": 2})
    told = d.assign_tasks(1, worker)
    assert d.check_tasks(worker, [worker])
    assert d.tasks_done(worker, told) == {worker: Done.DONE}


def test_workers_are_told_apart_by_case() -> None:
    d = dispenser(letters("ab"))
    assert keys(d.assign_tasks(1, "alice")) + keys(d.assign_tasks(1, "Alice")) == "ab"


@pytest.mark.parametrize("ttl", [0, -1, 86_401, float("nan"), "10", None])
def test_a_bucket_that_lasts_no_proper_time_is_refused(ttl: Any) -> None:
    with pytest.raises(BadOption, match="bucket_ttl"):
        TaskDispenser("reviews", bucket_ttl=ttl)


def test_an_assignment_inside_a_transaction_is_refused() -> None:
    d = dispenser(letters("ab"))
    with transaction.atomic(), pytest.raises(ClaimInTransaction):
        d.assign_tasks(1, "alice")
    assert waiting() == "ab"
