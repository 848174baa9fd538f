"""Buckets and the router by themselves, under the names of document 003."""

from typing import Any

import pytest

from resourcepool.contrib.dispenser_parts import TaskBucket, TaskPool, TaskRouter
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue import Done
from tests.app.rows import lasts
from tests.taskqueue.dispenser.dispensers import bucket, dispenser, keys, letters, run_out, states, waiting


def of(worker: str = "alice", exp: float = 600) -> TaskBucket:
    return TaskBucket(worker, exp, pool="reviews")


def test_a_bucket_has_what_is_put_into_it_and_others_do_not_get_it() -> None:
    d = dispenser(letters("abcd"))
    got = of().add([*TaskPool("reviews").assign(2), "c"])
    assert sorted(keys(got)) == ["a", "b", "c"]
    assert sorted(of().peek_all()) == ["a", "b", "c"]
    assert of("bob").add(["a"]) == []
    assert keys(d.assign_tasks(5, "bob")) == "d"
    assert d.tasks_done("alice", got) == dict.fromkeys(["a", "b", "c"], Done.DONE)


def test_what_is_put_into_a_bucket_keeps_its_score_and_its_order() -> None:
    d = dispenser({"z": 3, "c": 7, "a": 7, "b": 5, "first": 1})
    got = of().add(["c", "a", "b", "first", "z"])
    assert keys(got) == "firstzbca"
    assert [one.score for one in got] == [1.0, 3.0, 5.0, 7.0, 7.0]
    assert of().peek_all() == ["first", "z", "b", "c", "a"]
    assert keys(of("bob").add(["n", "m"])) == "nm"
    d.add("0", 4)
    run_out("alice")
    assert keys(d.assign_tasks(6, "carol")) == "firstz0bca"


def test_what_is_put_into_a_bucket_that_has_it_is_told_again() -> None:
    d = dispenser(letters("abc"))
    told = d.assign_tasks(2, "alice")
    assert of().add(["b", "a"]) == told
    assert keys(of().add(told)) == "ab"
    assert d.check_tasks("alice", told)


def test_an_expired_bucket_shows_nothing_and_gives_its_tasks_back() -> None:
    d = dispenser(letters("ab"))
    d.assign_tasks(2, "alice")
    run_out("alice")
    one = of()
    assert (one.peek_all(), one.pop(), one.expire(60), one.clear()) == ([], None, False, 0)
    assert keys(d.assign_tasks(2, "bob")) == "ab"


def test_a_bucket_expires_when_it_is_told_to() -> None:
    d = dispenser(letters("ab"))
    d.assign_tasks(1, "alice")
    assert of().expire(900)
    assert lasts(bucket("alice"), 900)
    assert of().expire(0)
    assert of().peek_all() == []


def test_popping_takes_out_for_good_and_extends_the_bucket() -> None:
    d = dispenser({101: 1, 102: 2, 103: 3})
    d.assign_tasks(3, "alice")
    one = of(exp=900)
    assert (one.pop(), one.pop(reverse=True)) == ("101", "103")
    assert lasts(bucket("alice"), 900)
    assert (one.pop(), one.pop()) == ("102", None)
    assert states() == {}


def test_clearing_a_bucket_loses_nothing() -> None:
    d = dispenser(letters("ab"))
    d.assign_tasks(2, "alice")
    assert of().clear() == 2
    assert waiting() == "ab"
    assert of("nobody").clear() == 0


def test_a_router_knows_which_worker_has_which_bucket() -> None:
    dispenser(letters("abc"))
    router = TaskRouter("reviews", prefix="bucket of {}")
    assert router.get("alice") is None
    assert router.add("alice") == router.add("alice") == router.get("alice") == "bucket of alice"
    assert router.add("bob") == router.get("bob") == router.make_task_name("bob")
    of("bucket of bob").add(["a"])
    of("bucket of alice").add(["b"])
    run_out("bucket of bob")
    assert (router.buckets(), router.get("bob")) == (["bucket of alice"], None)
    assert (router.clear(), router.buckets()) == (2, [])
    assert waiting() == "abc"


@pytest.mark.parametrize("prefix", ["{", "{0} {1}", "{a}", " {}", "all", "{0.__class__}", None])
def test_a_prefix_that_makes_no_name_is_refused(prefix: Any) -> None:
    with pytest.raises(BadOption, match="prefix"):
        TaskRouter("reviews", prefix)
