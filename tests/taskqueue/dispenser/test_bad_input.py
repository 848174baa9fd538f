"""What a careless caller may hand in is refused with BadOption, before anything is changed."""

from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.taskqueue import TaskBucket, TaskDispenser, TaskPool, TaskRouter
from tests.taskqueue.dispenser.dispensing import dispenser, letters, states

LINES = ["a\0b", "\0", "\ud800", "a\udfffb", "x" * 201, "a\u2028b", "\u200b", bytearray(b"a"), b"a"]


@pytest.mark.parametrize("line", LINES)
def test_text_that_no_database_keeps_is_neither_key_nor_name(line: Any) -> None:
    d = dispenser(letters("ab"))
    told = d.assign_tasks(1, "alice")
    calls = [
        lambda: TaskDispenser(line),
        lambda: TaskPool(line),
        lambda: TaskBucket(line, pool="reviews"),
        lambda: TaskBucket("alice", pool=line),
        lambda: TaskRouter("reviews").add(line),
        lambda: TaskRouter("reviews").get(line),
        lambda: d.add(line, 1),
        lambda: d.assign_tasks(1, line),
        lambda: d.touch(line),
        lambda: d.check_tasks("alice", [line]),
        lambda: d.check_tasks(line, told),
        lambda: d.tasks_done("alice", [(line, 1)]),
        lambda: d.tasks_done(line, told),
        lambda: d.give_back("alice", [(line, 1)]),
        lambda: TaskBucket("alice", pool="reviews").add([line]),
    ]
    for number, call in enumerate(calls):
        if isinstance(line, bytearray) and number == 6:
            continue  # cannot be in a mapping at all
        with pytest.raises(BadOption):
            call()
    assert states() == {"a": "assigned", "b": "ready"}


@pytest.mark.parametrize("tasks", [b"ab", bytearray(b"ab"), "ab", 5, None, [None], [("a", 1)], [1.0]])
def test_what_is_no_list_of_keys_is_refused(tasks: Any) -> None:
    d = dispenser({97: 1, 98: 2})
    d.assign_tasks(2, "alice")
    with pytest.raises(BadOption):
        d.check_tasks("alice", tasks)
    with pytest.raises(BadOption):
        TaskBucket("bob", pool="reviews").add(tasks)


@pytest.mark.parametrize(
    "fence", [2**63, -(2**70), 10**400, 10**5_000], ids=["64 bits", "negative", "long", "longer"]
)
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
