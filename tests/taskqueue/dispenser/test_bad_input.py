"""What a careless caller may hand in is refused with BadOption, before anything is changed."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction

from resourcepool.contrib.dispenser_parts import TaskBucket, TaskPool, TaskRouter
from resourcepool.exceptions import BadOption, ClaimInTransaction
from resourcepool.taskqueue import Done, TaskDispenser
from tests.taskqueue.dispenser.dispensers import (
    dispenser,
    keys,
    letters,
    states,
    waiting,
)

LINES = [
    "a\0b",
    "\ud800",
    "x" * 201,
    "a\u2028b",
    "a\nb",
    "",
    " a",
    "a ",
    b"a",
    None,
    1.5,
    True,
    pytest.param(10**5_000, id="long"),
]


@pytest.mark.parametrize("line", LINES)
def test_text_that_no_database_keeps_is_neither_key_nor_name(line: Any) -> None:
    d = dispenser(letters("ab"))
    told = d.assign_tasks(1, "alice")
    calls: dict[str, list[Callable[[], Any]]] = {
        "worker": [
            lambda: d.assign_tasks(1, line),
            lambda: d.check_tasks(line, told),
            lambda: d.tasks_done(line, told),
            lambda: d.give_back(line),
            lambda: d.touch(line),
        ],
        "task": [
            lambda: d.add(line, 1),
            lambda: d.check_tasks("alice", [line]),
            lambda: d.tasks_done("alice", [(line, 1)]),
            lambda: d.give_back("alice", [(line, 1)]),
            lambda: TaskBucket("alice", pool="reviews").add([line]),
        ],
        "name|key|pool": [
            lambda: TaskDispenser(line),
            lambda: TaskPool(line),
            lambda: TaskBucket(line, pool="reviews"),
            lambda: TaskBucket("alice", pool=line),
        ],
        "name": [lambda: TaskRouter("reviews").add(line), lambda: TaskRouter("reviews").get(line)],
        "val": [lambda: TaskRouter("reviews").make_task_name(line)],
    }
    for about, refused in calls.items():
        for call in refused:
            with pytest.raises(BadOption, match=f"^({about})"):
                call()
    assert states() == {"a": "assigned", "b": "ready"}


@pytest.mark.parametrize("tasks", [b"ab", "ab", 5, None, [None], [("a", 1)], [1.0], [True]])
def test_what_is_no_list_of_keys_is_refused(tasks: Any) -> None:
    d = dispenser({97: 1, 98: 2})
    d.assign_tasks(2, "alice")
    with pytest.raises(BadOption):
        d.check_tasks("alice", tasks)
    with pytest.raises(BadOption):
        TaskBucket("bob", pool="reviews").add(tasks)


@pytest.mark.parametrize("fence", [2**63, -1, pytest.param(10**5_000, id="long")])
def test_a_fence_that_no_task_can_have_finishes_nothing(fence: int) -> None:
    d = dispenser(letters("ab"))
    d.assign_tasks(1, "alice")
    with pytest.raises(BadOption, match="fence"):
        d.tasks_done("alice", [("a", fence)])
    with pytest.raises(BadOption, match="fence"):
        d.give_back("alice", [("a", fence)])
    assert states() == {"a": "assigned", "b": "ready"}


def test_what_is_handed_in_may_be_a_generator() -> None:
    d = dispenser(letters("abc"))
    told = d.assign_tasks(3, "alice")
    assert d.check_tasks("alice", (one.key for one in told))
    assert set(d.tasks_done("alice", (one for one in told[:2])).values()) == {"done"}
    assert d.give_back("alice", (one for one in told[2:])) == 1


@pytest.mark.parametrize(
    "priority", [math.nan, -math.inf, True, None, "1", Decimal(1), 10**400, pytest.param(10**5_000, id="long")]
)
def test_what_is_no_priority_is_refused_under_the_name_of_its_parameter(priority: Any) -> None:
    with pytest.raises(BadOption, match=r"^priority="):
        dispenser().add("a", priority)
    with pytest.raises(BadOption, match=r"^mapping=.*finite"):
        dispenser().add_many({"a": 1, "b": priority})
    assert states() == {}


class Nameless:
    """Something that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no name")


def test_what_cannot_be_shown_is_refused_like_anything_else() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: TaskDispenser(Nameless()),  # type: ignore[arg-type]
        lambda: dispenser().add(Nameless(), 1),  # type: ignore[arg-type]
        lambda: dispenser().add_many({"a": Nameless()}),  # type: ignore[dict-item]
        lambda: dispenser().tasks_done("alice", [Nameless()]),
    ]
    for call in calls:
        with pytest.raises(BadOption):
            call()


def test_keys_that_look_alike_are_different_tasks() -> None:
    alike = ["a", "A", "\u00e1", "a\u0301", "\uff41", "ß", "ss", "😀", "I", "\u0131", "ﬁ", "fi", "1", "\uff11"]
    d = dispenser(dict.fromkeys(alike, 1))
    told = d.assign_tasks(100, "alice")
    assert [one.key for one in told] == alike
    assert d.check_tasks("alice", alike)
    assert d.tasks_done("alice", told[:1]) == {"a": "done"}
    assert d.size() == 0
    assert sorted(states().values()) == ["assigned"] * (len(alike) - 1) + ["done"]


# What a dispenser refuses: names, limits, times, and bare keys.


@pytest.mark.parametrize(
    "task",
    ["a", 101, ("a",), ("a", None), ("a", True), {"a": 1}, ("a", 1, 2, 3)],
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
