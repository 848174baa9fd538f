"""Each attempt at a task has its own fence, and every write on the task matches it."""

import json
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from resourcepool.db.dialect import DbNow
from resourcepool.elections import Election
from resourcepool.exceptions import GuardOutsideTransaction, LeaseLost
from resourcepool.models import Stream, Task
from resourcepool.taskqueue import attempts, submit
from resourcepool.taskqueue.policy import End, TaskSnapshot
from resourcepool.taskqueue.running_task import RunningTask
from tests.app.rows import change, columns
from tests.taskqueue.consumers import states, stream, task

State = Task.State
DONE, READY = End(State.DONE, "late"), End(State.READY, "given back")
DELETED = End(None, "")


def head() -> TaskSnapshot:
    """Return the first task, as a leader sees it."""
    return attempts.first_tasks("default", "oracle", (), 1)[0]


def seen_of(keys: str) -> list[TaskSnapshot]:
    """Submit tasks with these keys, in lanes of their own; return them as a leader sees them."""
    stream(lanes=len(keys))
    for key in keys:
        submit("oracle", "note", key=key, lane=key)
    return attempts.first_tasks("default", "oracle", (), len(keys))


def begun(term: int = 1) -> TaskSnapshot:
    """Submit a task and begin it; return it as it was before."""
    stream()
    submit("oracle", "note", key="a")
    seen = head()
    assert attempts.begin("default", [seen], term, "me")
    return seen


def running(seen: TaskSnapshot) -> RunningTask:
    return RunningTask("oracle", seen, Election("oracle", Stream).campaign(), None)


def test_of_several_tasks_parameters_are_read_only_when_they_begin() -> None:
    stream(lanes=2)
    for key in "ab":
        submit("oracle", "note", {"key": key, "text": "x" * 60_000}, key=key, lane=key)
    several = attempts.first_tasks("default", "oracle", (), 2)
    assert [one.params for one in several] == ["", ""]
    assert [json.loads(one.params)["key"] for one in attempts.with_params("default", several)] == ["a", "b"]
    assert json.loads(head().params)["key"] == "a"


def test_a_task_is_begun_once_by_those_who_have_seen_it() -> None:
    seen = begun()
    assert not attempts.begin("default", [seen], 2, "another")
    assert (task("a").fence, task("a").attempts, task("a").holder) == (seen.fence + 1, 1, "me")


def test_a_task_that_an_operator_has_finished_is_not_begun() -> None:
    stream()
    submit("oracle", "note", key="a")
    seen = head()
    change(task("a"), state=State.DISCARDED, finished_at=timezone.now())
    assert not attempts.begin("default", [seen], 1, "me")


def test_of_several_tasks_those_are_begun_that_nobody_else_has_changed() -> None:
    seen = seen_of("abcd")
    change(task("b"), state=State.DISCARDED, finished_at=timezone.now(), fence=seen[1].fence + 1, term=7)
    change(task("c"), state=State.RUNNING, fence=seen[2].fence + 1, term=6)
    change(task("d"), finished_at=timezone.now())
    assert attempts.begin("default", seen, 7, "me") == [seen[0]]
    assert states() == {"a": "running", "b": "discarded", "c": "running", "d": "ready"}


def test_several_tasks_that_nobody_else_has_changed_are_all_begun_each_under_its_own_fence() -> None:
    seen = seen_of("abc")
    assert attempts.begin("default", seen, 7, "me") == seen
    rows = Task.objects.in_order().values_list("fence", "attempts", "term", "holder", "state")
    assert list(rows) == [(head.fence + 1, 1, 7, "me", "running") for head in seen]


@pytest.mark.parametrize("how", [DONE, READY, DELETED])
def test_of_several_attempts_those_end_that_are_still_their_tasks_attempts(how: End) -> None:
    seen = seen_of("abcd")
    attempts.begin("default", seen, 7, "me")
    change(task("b"), fence=seen[1].fence + 2)
    change(task("c"), finished_at=timezone.now())
    assert attempts.end("default", [(one.pk, one.fence + 1) for one in seen], how) == 2
    state = {} if how is DELETED else {key: how.state.value for key in "ad" if how.state}
    assert states() == {"b": "running", "c": "running", **state}


def test_an_attempt_does_not_end_another_task_that_has_the_same_fence() -> None:
    seen = seen_of("ab")
    change(task("b"), fence=seen[0].fence)
    attempts.begin("default", [seen[0]], 7, "me")
    change(task("b"), fence=seen[0].fence + 1)
    assert attempts.end("default", [(seen[0].pk, seen[0].fence + 1)], DONE) == 1
    assert states() == {"a": "done", "b": "ready"}


@pytest.mark.parametrize("how", [DONE, READY, DELETED])
@pytest.mark.parametrize(
    "meanwhile",
    [{"fence": F("fence") + 1}, {"state": State.DISCARDED, "finished_at": DbNow()}],
    ids=["begun again", "finished"],
)
def test_an_attempt_does_not_end_what_is_not_its_own_any_more(how: End, meanwhile: dict[str, Any]) -> None:
    seen = begun()
    Task.objects.update(**meanwhile)
    before = columns(task("a"))
    assert not attempts.end("default", [(seen.pk, seen.fence + 1)], how)
    assert columns(task("a")) == before


def test_what_a_former_leader_ran_is_taken_from_it_and_its_death_is_counted() -> None:
    seen = begun(term=1)
    assert attempts.take_over("default", "oracle", 2) == 1
    assert (task("a").crashes, states()) == (1, {"a": "ready"})
    assert not attempts.end("default", [(seen.pk, seen.fence + 1)], DONE)
    assert states() == {"a": "ready"}


@pytest.mark.parametrize(
    ("name", "term", "state"),
    [("oracle", 1, "running"), ("other", 2, "running")]
    + [("oracle", 2, state) for state in ("ready", "blocked", "dead", "done")],
)
def test_taking_over_leaves_alone_what_does_not_run_or_is_not_a_former_leaders(
    name: str, term: int, state: str
) -> None:
    begun(term=1)
    change(task("a"), state=state)
    assert attempts.take_over("default", name, term) == 0
    assert (task("a").crashes, states()) == (0, {"a": state})


def test_a_late_attempt_commits_nothing_and_shows_no_progress() -> None:
    seen = begun()
    late = running(seen)
    change(task("a"), fence=seen.fence + 2, outcome="of the next one")
    with pytest.raises(LeaseLost), transaction.atomic(), late.guard():
        Stream.objects.update(retry_delay=99)
    with pytest.raises(LeaseLost):
        late.progress("half way")
    assert Stream.objects.get().retry_delay != 99
    assert task("a").outcome == "of the next one"


def test_what_a_late_attempt_wrote_rolls_back_also_if_it_catches_the_error() -> None:
    seen = begun()
    late = running(seen)
    change(task("a"), fence=seen.fence + 2)
    with transaction.atomic():
        Stream.objects.update(retry_delay=99)
        with pytest.raises(LeaseLost), late.guard():
            pass
    assert Stream.objects.get().retry_delay != 99


def test_a_guard_without_a_transaction_is_refused() -> None:
    one = running(begun())
    with pytest.raises(GuardOutsideTransaction), one.guard():
        pass


def test_a_key_is_unique_in_its_stream_whoever_writes_it() -> None:
    stream()
    Task.objects.create(stream_id="oracle", key="a", type="note")
    with pytest.raises(IntegrityError), transaction.atomic():
        Task.objects.create(stream_id="oracle", key="a", type="note")
