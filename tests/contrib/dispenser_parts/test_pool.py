"""A pool of tasks: adding, changing and removing tasks."""

from typing import Any

import pytest

from resourcepool.contrib.dispenser_parts import TaskPool
from resourcepool.exceptions import BadOption
from resourcepool.models import DispenserTask
from tests.eventually import at_once
from tests.taskqueue.dispenser.dispensers import dispenser, keys, letters, states, waiting


def pool(tasks: dict[Any, float] | None = None) -> TaskPool:
    made = TaskPool("reviews")
    made.add_many(tasks or {})
    return made


def test_a_key_is_in_the_pool_once_and_has_the_last_score() -> None:
    p = pool(letters("abc"))
    assert not p.add("a", 9)
    assert p.add("d", 8)
    assert waiting() == "bcda"
    assert p.size() == 4


def test_what_is_added_after_its_end_is_new_work_and_has_arrived_now() -> None:
    d = dispenser({"a": 1, "b": 1})
    done = d.assign_tasks(1, "alice")
    d.tasks_done("alice", done)
    d.assign_tasks(0, "alice")
    DispenserTask.objects.filter(key="b").discard()
    assert d.add_many({"c": 1, "a": 1, "b": 1}) == 3
    told = d.assign_tasks(3, "bob")
    assert keys(told) == "cab"
    assert told[1].fence > done[0].fence


def test_many_are_added_in_one_call_in_this_order() -> None:
    p = pool(dict.fromkeys(range(2500), 0))
    assert p.size() == 2_500
    assert p.assign(3) == ["0", "1", "2"]
    assert p.add_many(dict.fromkeys(range(2600), 1)) == 103


def test_many_who_add_the_same_add_it_once() -> None:
    pool()
    told = at_once(8, lambda _: TaskPool("reviews").add_many({number: number for number in range(200)}))
    assert sum(told) == 200
    assert DispenserTask.objects.count() == 200


def test_clearing_takes_what_waits_and_nothing_else() -> None:
    d = dispenser({number: number for number in range(1_300)})
    told = d.assign_tasks(2, "alice")
    assert d.clear() == 1_298
    assert d.size() == 0
    assert d.check_tasks("alice", told)
    assert TaskPool("nothing").clear() == 0


def test_what_the_pool_assigns_is_gone_for_good() -> None:
    p = pool(letters("abcde"))
    assert p.assign(2) == ["a", "b"]
    assert states() == {"c": "ready", "d": "ready", "e": "ready"}
    assert (p.assign(0), p.assign(20), p.assign()) == ([], ["c", "d", "e"], [])


@pytest.mark.parametrize("size", [-1, 10_001, 2.0, None, True])
def test_a_size_that_is_none_is_refused(size: Any) -> None:
    with pytest.raises(BadOption, match="size"):
        pool().assign(size)
