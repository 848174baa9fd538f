"""The eight races that document 003 leaves open (R3.6, a to h)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from resourcepool.models import DispenserTask
from resourcepool.taskqueue import Done, TaskDispenser
from resourcepool.taskqueue.dispenser import statements
from tests.eventually import InBackground, at_once
from tests.taskqueue.dispenser.dispensers import dispenser, keys, letters, run_out, states, waiting

servers = pytest.mark.only("mysql", "postgresql")  # SQLite allows no write beside an open transaction


def after(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], Any]) -> None:
    """Have another process ``act`` once, right after this statement's first answer."""
    send, turns = getattr(statements, name), [act]

    def answered(*given: Any) -> Any:
        answer = send(*given)
        if turns:
            InBackground(turns.pop()).result(30)
        return answer

    monkeypatch.setattr(statements, name, answered)


@servers
@pytest.mark.parametrize("mapping", [letters("ab"), {"a": 9.0, "b": 1.0}, {"b": 1.0}])
def test_a_a_rebuild_leaves_alone_what_is_assigned_after_it_has_looked(
    monkeypatch: pytest.MonkeyPatch, mapping: dict[str, float]
) -> None:
    d = dispenser(letters("ab"))
    after(monkeypatch, "ready", lambda: TaskDispenser("reviews").assign_tasks(1, "alice"))
    d.recreate_task_pool(mapping)
    assert states() == {"a": "assigned", "b": "ready"}
    assert keys(d.assign_tasks(5, "bob")) == "b"


@pytest.mark.parametrize("name", ["touch", "tasks_in_bucket", "lock_first_ready", "take"])
def test_b_what_a_process_was_taking_when_it_died_is_in_the_pool(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    d, send = dispenser(letters("ab")), getattr(statements, name)

    def died(*given: Any) -> Any:
        send(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(statements, name, died)
        with pytest.raises(KeyboardInterrupt):
            d.assign_tasks(1, "alice")
    assert waiting() == "ab"
    assert keys(d.assign_tasks(2, "bob")) == "ab"


def test_c_a_late_worker_finishes_nothing_that_was_handed_out_again() -> None:
    d = dispenser(letters("a"))
    late = d.assign_tasks(1, "alice")
    run_out("alice")
    again = d.assign_tasks(1, "alice")
    assert d.tasks_done("alice", late) == {"a": Done.STALE}
    assert d.tasks_done("alice", again) == {"a": Done.DONE}


def test_c_a_bucket_that_expires_while_it_is_filled_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    d = dispenser(letters("a"))
    (late,) = d.assign_tasks(1, "alice")
    after(monkeypatch, "read_snapshot", lambda: run_out("alice"))
    (again,) = d.assign_tasks(1, "alice")
    assert again.fence > late.fence


def test_d_only_what_is_said_to_be_done_is_done() -> None:
    d = dispenser(letters("abcd"))
    first = d.assign_tasks(2, "alice")
    d.assign_tasks(4, "alice")
    d.tasks_done("alice", first)
    assert d.check_tasks("alice", ["c", "d"])
    assert states() == {"a": "done", "b": "done", "c": "assigned", "d": "assigned"}


def test_e_many_assignments_of_one_worker_overfill_nothing() -> None:
    dispenser({number: number for number in range(100)})
    told = at_once(8, lambda _: TaskDispenser("reviews").assign_tasks(5, "alice"))
    assert [one == told[0] for one in told] == [True] * 8
    assert DispenserTask.objects.filter(state="assigned").count() == 5


@servers
@pytest.mark.parametrize("statement", ["read_snapshot", "tasks_in_bucket"])
def test_e_one_that_comes_in_between_waits_or_is_counted(
    monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    d = dispenser(letters("abcdef"))
    d.assign_tasks(1, "alice")
    others = []
    assigning = lambda: TaskDispenser("reviews").assign_tasks(3, "alice")  # noqa: E731
    if statement == "read_snapshot":
        after(monkeypatch, statement, assigning)
    else:
        # It waits for the bucket, and goes on after our commit.
        after(monkeypatch, statement, lambda: others.append(InBackground(assigning)))
    told = d.assign_tasks(3, "alice")
    for other in others:
        assert other.result(30) == told
    assert DispenserTask.objects.filter(state="assigned").count() == len(told) == 3


@servers
@pytest.mark.parametrize("is_done", [False, True])
def test_e_what_a_twin_puts_back_in_between_is_told_once_and_under_its_new_fence(
    monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    d, twin = dispenser(letters("abcdef")), TaskDispenser("reviews")
    before = d.assign_tasks(2, "alice")

    def put_back() -> None:
        if is_done:
            twin.tasks_done("alice", before)
            twin.add_many({"a": 0, "b": 1})
        else:
            twin.give_back("alice", before)

    after(monkeypatch, "tasks_in_bucket", put_back)
    told = d.assign_tasks(4, "alice")
    assert keys(told) == "abcd"
    assert d.check_tasks("alice", told)
    assert set(d.tasks_done("alice", told).values()) == {Done.DONE}


def test_f_a_pool_that_is_being_rebuilt_is_as_it_was_before() -> None:
    d = dispenser(letters("ab"))
    with transaction.atomic():
        d.recreate_task_pool({"b": 0, "c": 1, "d": 2})
        assert InBackground(TaskDispenser("reviews").size).result(30) == 2
    assert waiting() == "bcd"


@servers
def test_g_what_is_done_while_a_bucket_is_trimmed_does_not_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    d = dispenser(letters("abc"))
    told, said = d.assign_tasks(3, "alice"), []
    after(
        monkeypatch,
        "tasks_in_bucket",
        lambda: said.append(TaskDispenser("reviews").tasks_done("alice", told[1:])),
    )
    d.assign_tasks(1, "alice")
    assert said == [{"b": Done.DONE, "c": Done.DONE}]
    assert states() == {"a": "assigned", "b": "done", "c": "done"}


def test_g_what_was_trimmed_is_not_done_and_waits_at_once() -> None:
    d = dispenser(letters("ab"))
    told = d.assign_tasks(2, "alice")
    d.assign_tasks(1, "alice")
    assert d.tasks_done("alice", told) == {"a": Done.DONE, "b": Done.STALE}
    assert waiting() == "b"


def test_h_what_was_done_while_the_mapping_was_computed_stays_done() -> None:
    d = dispenser(letters("ab"))
    started, mapping = d.now(), letters("ab")
    d.tasks_done("alice", d.assign_tasks(1, "alice"))
    assert d.recreate_task_pool(mapping, as_of=started).ignored == 1
    assert states() == {"a": "done", "b": "ready"}
