"""Finished tasks are removed after the retention time of their stream."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.models import Stream, Task
from resourcepool.sweeps import pruning
from resourcepool.sweeps.pruning import prune_finished
from resourcepool.taskqueue import NewTask, submit_many

STATES = [state.value for state in Task.State]


def test_removes_old_finished_tasks_but_not_dead_letters_or_unfinished_ones() -> None:
    for name, kept in (("week", 7 * 86_400), ("hour", 3_600)):
        Stream.objects.create(name=name, done_kept=kept)
        submit_many(name, [NewTask("note", key=state) for state in STATES])
    a_day_ago = timezone.now() - datetime.timedelta(days=1)
    for state in STATES:
        at = None if state in ("ready", "running", "blocked") else a_day_ago
        Task.objects.filter(key=state).update(state=state, finished_at=at)
    assert prune_finished() == 3
    assert Task.objects.filter(stream_id="week").count() == len(STATES)
    left = set(Task.objects.filter(stream_id="hour").values_list("key", flat=True))
    assert left == {"ready", "running", "blocked", "dead"}


def test_keeps_a_task_that_is_retried_just_before_its_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    Stream.objects.create(name="hour", done_kept=3_600)
    submit_many("hour", [NewTask("note", key="skipped")])
    Task.objects.update(state="skipped", finished_at=timezone.now() - datetime.timedelta(days=1))
    remove = pruning.run_short_transaction

    def retried_first(*args: Any, **kwargs: Any) -> Any:
        Task.objects.retry()
        return remove(*args, **kwargs)

    monkeypatch.setattr(pruning, "run_short_transaction", retried_first)
    assert prune_finished() == 0
    assert Task.objects.get().state == "ready"
