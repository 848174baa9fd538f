"""What operators do to streams and tasks."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbNow
from resourcepool.elections import Election
from resourcepool.models import Dispenser, DispenserTask, Stream, Task, Timer, Topic
from resourcepool.taskqueue import handler, submit
from resourcepool.taskqueue.abstract import work_models
from tests.app.rows import change, columns
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, consuming, finished, states, stream, task
from tests.taskqueue.dispenser_rows import dispenser
from tests.taskqueue.timers.runners import topic


def test_a_blocked_task_that_is_retried_is_the_next_one_that_runs() -> None:
    stream()
    may_succeed: list[bool] = []
    handler("note")(lambda one: one.key != "a" or bool(may_succeed))
    submit("oracle", "note", key="a")
    submit("oracle", "note", key="b")
    with consuming():
        eventually(lambda: states() == {"a": "blocked", "b": "ready"}, WITHIN, states)
        may_succeed.append(True)
        assert Task.objects.all().retry("alice") == 1
        finished(2)
    assert states() == {"a": "done", "b": "done"}
    assert task("a").attempts == 2


@pytest.fixture(params=work_models(), ids=lambda model: model.__name__)
def work(request: pytest.FixtureRequest) -> Any:
    """A model of tasks or timers, with a row of each state, named after it, that has failed before."""
    model = request.param
    stream()
    dispenser()
    topic()
    place = {Task: "oracle", DispenserTask: "reviews", Timer: "t"}[model]
    needed = {Task: {}, DispenserTask: {"score": 1}, Timer: {"due_at": DbNow()}}[model]
    for state in model.State.values:
        said = {"outcome": "OSError: no disk", **dict.fromkeys(model.reset_counts, 2)}
        key = dict(zip(model.key_columns, (place, state), strict=True))
        model.objects.create(**key, **needed, **said, state=state)
    model.objects.filter(state__in=model.failed_states).update(finished_at=DbNow())
    return model


def test_work_that_failed_is_retried_as_if_it_had_not_and_other_work_left_alone(work: Any) -> None:
    before = states_of(work)
    assert work.objects.all().retry("alice") == len(work.failed_states)
    assert states_of(work) == {**before, **dict.fromkeys(work.failed_states, work.ready_state)}
    fresh = {"finished_at": None, "outcome": "", **work.reset_counts}
    retried = work.objects.filter(**{f"{work.key_columns[1]}__in": work.failed_states})
    assert {tuple(row.items()) for row in retried.values(*fresh)} == {tuple(fresh.items())}


def test_waiting_and_failed_work_is_discarded_and_other_work_left_alone(work: Any) -> None:
    before = states_of(work)
    assert work.objects.all().discard("alice", "no such disk") == len(work.discardable_states)
    assert states_of(work) == {**before, **dict.fromkeys(work.discardable_states, "discarded")}
    discarded = work.objects.filter(**{f"{work.key_columns[1]}__in": work.discardable_states})
    assert set(discarded.values_list("outcome", flat=True)) == {"discarded by alice: no such disk"}
    assert not discarded.filter(finished_at=None)


def states_of(work: Any) -> dict[str, str]:
    return dict(work.objects.values_list(work.key_columns[1], "state"))


@pytest.mark.parametrize("model", [Stream, Dispenser, Topic])
def test_pausing_and_resuming_tell_how_many_changed(model: Any) -> None:
    model.objects.create(name="a")
    assert [model.objects.all().pause(), model.objects.all().pause(), model.objects.all().resume()] == [1, 0, 1]


# Saving a stream changes its settings, but not the columns that its leader writes.


OF_THE_LEADER = ("address", "elected_at", "elected_term", "resigned_term")


def test_an_instance_that_is_older_than_the_leader_leaves_its_columns_alone() -> None:
    old = stream()
    with Election("oracle", Stream, lock_delay=0.001).campaign() as term:
        change(old, address=7, resigned_term=5)
        before = columns(old)
        old.retry_delay = 99
        old.save()
        after = columns(old)
        term.ensure_held()
    assert after["retry_delay"] == 99
    assert [after[name] for name in OF_THE_LEADER] == [before[name] for name in OF_THE_LEADER]
    assert (after["fence"], after["busy_before"]) == (before["fence"], before["busy_before"])


@pytest.mark.parametrize("name", ["address", "resigned_term"])
def test_a_column_of_the_leader_is_saved_when_it_is_named(name: str) -> None:
    row = stream()
    setattr(row, name, 7)
    row.save(update_fields=[name])
    assert columns(row)[name] == 7
