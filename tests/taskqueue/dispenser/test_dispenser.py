"""Tasks are handed out in buckets: in order, each to one worker, and none is lost."""

import datetime
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from resourcepool.db.dialect import DbLater
from resourcepool.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue import Done, TaskDispenser
from resourcepool.taskqueue.dispenser import bucket_lifecycle
from tests.app.rows import lasts
from tests.eventually import at_once
from tests.taskqueue.dispenser.dispensers import (
    bucket,
    dispenser,
    keys,
    letters,
    run_out,
    states,
    task,
    waiting,
)


def test_the_lowest_score_comes_first_and_of_equal_ones_what_came_first() -> None:
    d = dispenser({"late": 2, "first": 1.5, "negative": -3})
    d.add("second", 1.5)
    told = d.assign_tasks(10, "alice")
    assert [one.key for one in told] == ["negative", "first", "second", "late"]
    assert [one.score for one in told] == [-3.0, 1.5, 1.5, 2.0]


def test_a_worker_keeps_what_it_has_and_gets_what_is_missing() -> None:
    d = dispenser(letters("abcdef"))
    first = d.assign_tasks(2, "alice")
    again = d.assign_tasks(4, "alice")
    assert keys(again) == "abcd"
    assert again[:2] == first


def test_what_a_worker_has_too_much_goes_back_at_once() -> None:
    d = dispenser(letters("abcdef"))
    before = d.assign_tasks(5, "alice")
    assert keys(d.assign_tasks(2, "alice")) == "ab"
    assert waiting() == "cdef"
    assert d.tasks_done("alice", before) == {
        **dict.fromkeys("ab", Done.DONE),
        **dict.fromkeys("cde", Done.STALE),
    }


def test_an_empty_pool_gives_nothing_and_an_unknown_dispenser_is_made() -> None:
    assert dispenser().assign_tasks(5, "alice") == []
    assert TaskDispenser("another").assign_tasks(5, "alice") == []
    assert set(Dispenser.objects.values_list("pk", flat=True)) == {"reviews", "another"}


def test_dispensers_do_not_share_tasks() -> None:
    d, other = dispenser(letters("ab")), TaskDispenser("another")
    other.add("a", 1)
    assert keys(other.assign_tasks(5, "alice")) == "a"
    assert keys(d.assign_tasks(5, "alice")) == "ab"


def test_what_comes_before_the_first_that_was_seen_is_handed_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    d, look = dispenser({"c": 1.5, "d": 1.5}), bucket_lifecycle.WorkerBucket.open
    later = iter([("b", 1.0), ("a", 0.5)])

    def looked(bucket: Any) -> Any:
        seen = look(bucket)
        d.add(*next(later))
        return seen

    monkeypatch.setattr(bucket_lifecycle.WorkerBucket, "open", looked)
    assert keys(d.assign_tasks(5, "alice")) == "abcd"


@pytest.mark.parametrize("score", [0.1, -1e-300, 1e22, 2.0**60 + 256, -0.0, 1 / 3])
def test_tasks_of_one_score_are_handed_out_as_they_came_whatever_the_score(score: float) -> None:
    d = dispenser(dict.fromkeys("abcd", score))
    assert keys(d.assign_tasks(1, "alice")) == "a"
    assert keys(d.assign_tasks(2, "bob")) == "bc"
    d.give_back("alice")
    assert keys(d.assign_tasks(2, "carol")) == "ad"


def test_a_task_is_done_once_and_saying_so_again_is_the_same() -> None:
    d = dispenser(letters("ab"))
    told = d.assign_tasks(1, "alice")
    assert d.tasks_done("alice", told) == d.tasks_done("alice", told) == {"a": Done.DONE}
    assert d.tasks_done("bob", told) == {"a": Done.STALE}
    assert (d.tasks_done("alice", []), task("a").outcome) == ({}, "done by alice")
    assert states() == {"a": "done", "b": "ready"}
    assert keys(d.assign_tasks(2, "alice")) == "b"


def test_only_its_own_assignment_is_done() -> None:
    d = dispenser(letters("ab"))
    (mine,) = d.assign_tasks(1, "alice")
    assert d.tasks_done("bob", [mine]) == {"a": Done.STALE}
    d.assign_tasks(0, "alice")
    (again,) = d.assign_tasks(1, "alice")
    assert again.fence > mine.fence
    assert d.tasks_done("alice", [mine, ("zz", 5)]) == {"a": Done.STALE, "zz": Done.UNKNOWN}
    assert states() == {"a": "assigned", "b": "ready"}
    assert d.tasks_done("alice", [(again.key, again.fence)]) == {"a": Done.DONE}


def test_tasks_are_checked_under_the_fences_of_their_assignment() -> None:
    d = dispenser(letters("a"))
    late = d.assign_tasks(1, "alice")
    d.give_back("alice")
    again = d.assign_tasks(1, "alice")
    assert not d.check_tasks("alice", late)
    assert d.check_tasks("alice", again)
    assert d.check_tasks("alice", ["a"])


def test_what_a_worker_has_in_an_expired_bucket_can_be_given_back() -> None:
    d = dispenser(letters("ab"))
    d.assign_tasks(2, "alice")
    run_out("alice")
    assert d.give_back("alice") == 2
    assert waiting() == "ab"
    assert task("a").expirations == 0
    assert d.give_back("nobody") == 0


def test_a_bucket_expires_as_a_whole_and_its_tasks_return_at_once() -> None:
    d = dispenser(letters("abcd"))
    late = d.assign_tasks(2, "alice")
    run_out("alice")
    assert not d.check_tasks("alice", ["ab"])
    assert not d.touch("alice")
    taken = d.assign_tasks(3, "bob")
    assert keys(taken) == "abc"
    assert d.tasks_done("alice", late) == {"a": Done.STALE, "b": Done.STALE}
    assert task("a").expirations == 1
    assert not Bucket.objects.filter(name="alice").exists()
    assert d.tasks_done("bob", taken) == dict.fromkeys("abc", Done.DONE)


def statements_of_an_assignment(expired: int) -> int:
    """Return how many statements an assignment takes after so many workers were away for long."""
    d = dispenser(dict.fromkeys(range(2 * expired), 1))
    for number in range(expired):
        d.assign_tasks(2, f"worker {number}")
    Bucket.objects.update(busy_before=DbLater(-1))
    with CaptureQueriesContext(connection) as sent:
        assert len(d.assign_tasks(2 * expired, "returned")) == 2 * expired
    assert Bucket.objects.get().name == "returned"
    return len(sent)


def test_an_assignment_takes_many_expired_buckets_back_with_as_few_statements_as_one() -> None:
    assert statements_of_an_assignment(1) == statements_of_an_assignment(30)


def test_workers_that_return_at_once_after_an_outage_get_all_tasks() -> None:
    d = dispenser(dict.fromkeys(range(120), 1))
    for number in range(12):
        d.assign_tasks(10, f"worker {number}")
    Bucket.objects.update(busy_before=DbLater(-1))
    told = at_once(12, lambda number: TaskDispenser("reviews").assign_tasks(10, f"worker {number}"))
    got = [one.key for each in told for one in each]
    assert len(got) == len(set(got))
    assert len(got) + d.size() == 120
    assert set(DispenserTask.objects.values_list("expirations", flat=True)) == {1}


def test_what_nobody_took_back_is_done_also_when_its_bucket_has_expired() -> None:
    d = dispenser(letters("ab"))
    told = d.assign_tasks(1, "alice")
    run_out("alice")
    assert d.tasks_done("alice", told) == {"a": Done.DONE}
    assert keys(d.assign_tasks(2, "bob")) == "b"


def test_a_bucket_lives_as_long_as_its_worker_shows_itself() -> None:
    d = dispenser(letters("ab"), bucket_ttl=datetime.timedelta(minutes=5))
    d.assign_tasks(1, "alice")
    assert lasts(bucket("alice"), 300)
    assert TaskDispenser("reviews", bucket_ttl=900).touch("alice")
    assert lasts(bucket("alice"), 900)
    assert not d.touch("nobody")


def test_a_worker_holds_exactly_what_it_says_or_it_does_not() -> None:
    d = dispenser(letters("abc"))
    told = d.assign_tasks(2, "alice")
    assert d.check_tasks("alice", told)
    assert d.check_tasks("alice", ["b", "a"])
    for other in (["a"], ["a", "b", "c"], []):
        assert not d.check_tasks("alice", other)
    assert not d.check_tasks("bob", [])
    d.tasks_done("alice", told)
    assert d.check_tasks("alice", [])


def test_tasks_that_expired_too_often_leave_the_pool_with_a_reason() -> None:
    d = dispenser(letters("ab"))
    Dispenser.objects.update(most_expirations=2)
    for _ in range(2):
        d.assign_tasks(1, "alice")
        run_out("alice")
    assert keys(d.assign_tasks(2, "bob")) == "b"
    assert (task("a").state, task("a").expirations) == ("failed", 2)
    assert task("a").outcome == "its bucket expired 2 times: its workers crashed or took too long"
    d.add("a", 0)
    assert keys(d.assign_tasks(2, "bob")) == "b"
    assert DispenserTask.objects.retry() == 1
    assert keys(d.assign_tasks(2, "bob")) == "ab"
    assert task("a").expirations == 0


def test_what_is_given_back_waits_again_and_was_no_expiry() -> None:
    d = dispenser(letters("abc"))
    told = d.assign_tasks(3, "alice")
    assert d.give_back("bob", told) == 0
    assert d.give_back("alice", told[1:2]) == 1
    assert waiting() == "b"
    assert d.give_back("alice") == 2
    assert d.give_back("alice") == d.give_back("nobody") == 0
    assert waiting() == "abc"
    assert task("a").expirations == 0


def test_what_is_done_inside_a_transaction_goes_with_it() -> None:
    d = dispenser(letters("ab"))
    told = d.assign_tasks(1, "alice")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert d.tasks_done("alice", told) == {"a": Done.DONE}
        raise ZeroDivisionError
    assert states()["a"] == "assigned"
    with transaction.atomic():
        d.tasks_done("alice", told)
        d.add("c", 0)
    assert states() == {"c": "ready", "a": "done", "b": "ready"}


def test_many_at_once_get_different_tasks() -> None:
    dispenser({number: number for number in range(120)})
    told = at_once(8, lambda number: TaskDispenser("reviews").assign_tasks(10, f"worker {number}"))
    got = [one.key for tasks in told for one in tasks]
    assert len(got) == len(set(got)) == 80
    assert {len(tasks) for tasks in told} == {10}


def test_a_hundred_tasks_are_done_in_one_call() -> None:
    d = dispenser(dict.fromkeys(range(2500), 0))
    told = d.assign_tasks(2_500, "alice")
    assert len(told) == 2_500
    assert set(d.tasks_done("alice", told).values()) == {Done.DONE}
    assert d.assign_tasks(1, "alice") == []
