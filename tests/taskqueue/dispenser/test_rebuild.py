"""A rebuild is a diff in one transaction: assigned and finished tasks do not come back."""

import datetime
import threading
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import BadOption
from resourcepool.models import Dispenser, DispenserTask
from resourcepool.taskqueue import TaskDispenser
from resourcepool.taskqueue.dispenser import bucket_lifecycle
from resourcepool.taskqueue.dispenser.rebuild import Rebuilt
from tests.app.rows import change
from tests.eventually import InBackground, at_once
from tests.taskqueue.dispenser.dispensers import dispenser, keys, letters, run_out, states, task, waiting

SECOND = datetime.timedelta(seconds=1)


def finished(d: TaskDispenser, ago: datetime.timedelta) -> None:
    """Have the first task done, so long ago."""
    (told,) = d.assign_tasks(1, "alice")
    d.tasks_done("alice", [told])
    change(task(told.key), finished_at=d.now() - ago)


def test_a_new_pool_is_what_the_mapping_says() -> None:
    d = dispenser()
    assert d.recreate_task_pool({101: 5.0, 102: 1.0}, as_of=d.now()) == Rebuilt(added=2)
    assert list(states()) == ["102", "101"]


def test_what_is_missing_goes_what_is_new_comes_and_scores_change() -> None:
    d = dispenser(letters("abcd"))
    before = task("b").pk
    told = d.recreate_task_pool({"b": 1, "c": 9, "x": 5})
    assert told == Rebuilt(added=1, changed=1, kept=1, retired=2)
    assert list(states()) == ["b", "x", "c"]
    assert task("b").pk == before


def test_what_workers_have_stays_with_them_whatever_the_mapping_says() -> None:
    d = dispenser(letters("abc"))
    told = d.assign_tasks(2, "alice")
    assert d.recreate_task_pool({"a": 9, "c": 1}) == Rebuilt(changed=1, assigned=1)
    assert d.assign_tasks(2, "alice") == told


def test_what_finished_since_the_mapping_was_computed_is_ignored() -> None:
    d = dispenser(letters("ab"))
    finished(d, 5 * SECOND)
    assert d.recreate_task_pool(letters("ab"), as_of=d.now() - 10 * SECOND) == Rebuilt(kept=1, ignored=1)
    assert keys(d.assign_tasks(5, "bob")) == "b"


def test_what_finished_before_the_mapping_was_computed_is_new_work() -> None:
    d = dispenser(letters("ab"))
    finished(d, 20 * SECOND)
    late = task("a").fence
    assert d.recreate_task_pool(letters("ab"), as_of=d.now() - 10 * SECOND) == Rebuilt(added=1, kept=1)
    (told, _) = d.assign_tasks(5, "bob")
    assert told.key == "a"
    assert told.fence > late


def test_without_its_moment_a_mapping_brings_nothing_back_that_is_finished() -> None:
    d = dispenser(letters("ab"))
    finished(d, 20 * SECOND)
    assert d.recreate_task_pool(letters("ab")) == Rebuilt(kept=1, ignored=1)


def test_what_finished_at_that_very_moment_is_ignored() -> None:
    d = dispenser(letters("ab"))
    finished(d, 20 * SECOND)
    assert d.recreate_task_pool(letters("ab"), as_of=task("a").finished_at).ignored == 1


def test_what_has_failed_stays_failed() -> None:
    d = dispenser(letters("ab"))
    Dispenser.objects.update(most_expirations=1)
    d.assign_tasks(1, "alice")
    run_out("alice")
    d.assign_tasks(0, "bob")
    assert d.recreate_task_pool(letters("ab"), as_of=d.now()) == Rebuilt(kept=1, ignored=1)
    assert d.recreate_task_pool({}, as_of=d.now()) == Rebuilt(retired=1)
    assert states() == {"a": "failed"}


def test_an_older_mapping_changes_nothing_after_a_younger_one() -> None:
    d = dispenser()
    now = d.now()
    d.recreate_task_pool(letters("ab"), as_of=now)
    assert d.recreate_task_pool({}, as_of=now - SECOND) == Rebuilt(is_outdated=True)
    assert waiting() == "ab"
    assert d.recreate_task_pool(letters("ab"), as_of=now) == Rebuilt(kept=2)


def test_thousands_are_rebuilt_in_one_call() -> None:
    d = dispenser({number: number for number in range(2_500)})
    told = d.recreate_task_pool({number: number % 2 for number in range(1_000, 3_500)}, as_of=d.now())
    assert told == Rebuilt(added=1_000, changed=1_500, retired=1_000)
    assert d.assign_tasks(1, "alice")[0].key == "1000"


def test_rebuilds_and_assignments_at_once_dispense_nothing_twice() -> None:
    dispenser({number: number for number in range(200)})

    def work(number: int) -> list[str]:
        d = TaskDispenser("reviews")
        if number < 2:
            for _ in range(4):
                d.recreate_task_pool({key: key * number for key in range(200)}, as_of=d.now())
            return []
        done = []
        for _ in range(5):
            told = d.assign_tasks(5, f"worker {number}")
            done += [key for key, how in d.tasks_done(f"worker {number}", told).items() if how == "done"]
        return done

    got = [key for told in at_once(6, work, timeout=60) for key in told]
    # Those that finished before a later mapping was computed are new work; without one, none is done twice.
    assert DispenserTask.objects.count() == 200
    assert len(got) == 100


@pytest.mark.only("mysql", "postgresql")
def test_an_assignment_waits_for_a_rebuild_that_has_the_whole_pool_locked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    d, waits, fill = dispenser(letters("abc")), threading.Event(), bucket_lifecycle.WorkerBucket._fill

    def noted(*given: Any, after_rebuild: bool = False) -> Any:
        if after_rebuild:
            waits.set()
        return fill(*given, after_rebuild=after_rebuild)

    monkeypatch.setattr(bucket_lifecycle.WorkerBucket, "_fill", noted)
    with transaction.atomic():
        d.recreate_task_pool({"a": 3, "b": 2, "c": 1})
        assigning = InBackground(lambda: TaskDispenser("reviews").assign_tasks(3, "alice"))
        assert waits.wait(30)
    assert keys(assigning.result(30)) == "cba"


@pytest.mark.only("mysql", "postgresql")
def test_an_assignment_that_has_found_some_tasks_does_not_wait_for_a_rebuild_that_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    d, limited, waits = dispenser(letters("abcdef")), bucket_lifecycle.short_transaction, list[int]()

    def noted(connection: Any, *, wait: int = 0) -> Any:
        waits.append(wait)
        return limited(connection, wait=wait)

    told = d.assign_tasks(3, "alice")
    with transaction.atomic():
        d.recreate_task_pool(letters("fed"))
        monkeypatch.setattr(bucket_lifecycle, "short_transaction", noted)
        again = InBackground(lambda: TaskDispenser("reviews").assign_tasks(6, "alice")).result(30)
    assert again == told
    assert waits == [bucket_lifecycle.WAIT, bucket_lifecycle.SHORT_REBUILD]


@pytest.mark.only("mysql", "postgresql")
def test_a_task_is_added_beside_a_rebuild_and_a_rebuild_is_done_beside_an_addition() -> None:
    d = dispenser(letters("abc"))
    adds = lambda: TaskDispenser("reviews").add("x", 0)  # noqa: E731
    rebuilds = lambda: TaskDispenser("reviews").recreate_task_pool(letters("cba"))  # noqa: E731
    with transaction.atomic():
        d.recreate_task_pool(letters("abc"))
        assert InBackground(adds).result(30)
    with transaction.atomic():
        d.add("y", 9)
        assert InBackground(rebuilds).result(30).retired == 1
    assert waiting() == "cbay"


@pytest.mark.parametrize("as_of", [datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1), 5])  # noqa: DTZ001
def test_a_moment_that_is_none_is_refused(as_of: Any) -> None:
    with pytest.raises(BadOption, match="as_of"):
        dispenser().recreate_task_pool({}, as_of=as_of)


def test_a_mapping_that_is_not_allowed_changes_nothing() -> None:
    d = dispenser(letters("a"))
    with pytest.raises(BadOption, match=r"mapping={'c': nan} .* a finite number for each key"):
        d.recreate_task_pool({"b": 1, "c": float("nan")})
    assert waiting() == "a"
