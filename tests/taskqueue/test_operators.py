"""What operators do to streams and tasks."""

import pytest
from django.utils import timezone

from resourcepool.elections import Election
from resourcepool.models import Stream, Task
from resourcepool.taskqueue import handler, submit, submit_many
from resourcepool.taskqueue.abstract import work_models
from resourcepool.taskqueue.submission import NewTask
from tests.app.rows import change, columns
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, consuming, finished, states, stream, task
from tests.taskqueue.dispenser_rows import dispenser, failed
from tests.taskqueue.timers.runners import due


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


def test_a_blocked_task_that_is_discarded_lets_the_others_run() -> None:
    stream()
    handler("note")(lambda one: one.key != "a")
    submit("oracle", "note", key="a")
    submit("oracle", "note", key="b")
    with consuming():
        eventually(lambda: states() == {"a": "blocked", "b": "ready"}, WITHIN, states)
        assert Task.objects.filter(key="a").discard("alice", "no such disk") == 1
        finished(2)
    assert states() == {"a": "discarded", "b": "done"}
    assert task("a").outcome == "discarded by alice: no such disk"


def test_what_is_running_or_done_is_neither_retried_nor_discarded() -> None:
    stream()
    submit_many("oracle", [NewTask("note", key=state) for state in ("running", "done")])
    for key in ("running", "done"):
        Task.objects.filter(key=key).update(state=key)
    assert Task.objects.all().retry() == 0
    assert Task.objects.all().discard() == 0


def test_pausing_and_resuming_tell_how_many_changed() -> None:
    stream()
    assert Stream.objects.all().pause() == 1
    assert Stream.objects.all().pause() == 0
    assert Stream.objects.all().resume() == 1


def test_what_is_retried_does_not_show_what_came_of_it_before() -> None:
    stream()
    dispenser()
    submit("oracle", "note", key="a")
    failed("a", "b")
    due("a")
    due("b")
    for work in work_models():
        over = {"state": work.failed_states[0], "finished_at": timezone.now()}
        work.objects.update(**over, outcome="OSError: no disk")
        first = work.objects.order_by("pk").first()
        assert work.objects.filter(pk=first.pk).discard("alice", "no such disk") == 1
        assert work.objects.retry("alice") == work.objects.count()
        assert set(work.objects.values_list("outcome", flat=True)) == {""}


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
