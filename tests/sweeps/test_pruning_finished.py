"""Finished tasks and timers are removed after the retention time of their stream, topic or dispenser."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.db.dialect import DbLater
from resourcepool.db.receipts import KEPT
from resourcepool.models import Dispenser, DispenserTask, Receipt, Stream, Task, Timer, Topic
from resourcepool.sweeps import pruning
from resourcepool.sweeps.pruning import prune_finished
from resourcepool.taskqueue import NewTask, TaskDispenser, submit_many, timers


def make_tasks(name: str) -> None:
    Stream.objects.create(name=name)
    submit_many(name, [NewTask("note", key=state) for state in Task.State.values])


def make_timers(name: str) -> None:
    for state in Timer.State.values:
        timers.schedule(state, topic=name, after=60)


def dispense(name: str) -> None:
    TaskDispenser(name).add_many(dict.fromkeys(DispenserTask.State.values, 1))


@pytest.mark.parametrize(
    ("owners", "rows", "columns", "make", "unfinished", "failed"),
    [
        (Stream, Task, ("stream", "key"), make_tasks, {"ready", "running", "blocked"}, {"dead"}),
        (Topic, Timer, ("topic", "name"), make_timers, {"pending", "running"}, {"dead"}),
        (Dispenser, DispenserTask, ("dispenser", "key"), dispense, {"ready", "assigned"}, {"failed"}),
    ],
)
def test_removes_old_finished_rows_but_not_failed_or_unfinished_ones(
    owners: Any,
    rows: Any,
    columns: tuple[str, str],
    make: Callable[[str], None],
    unfinished: set[str],
    failed: set[str],
) -> None:
    owner, name = columns
    for each, kept in (("week", 7 * 86_400), ("hour", 3_600)):
        make(each)
        owners.objects.filter(pk=each).update(done_kept=kept)
    a_day_ago = timezone.now() - datetime.timedelta(days=1)
    for state in rows.State.values:
        at = None if state in unfinished else a_day_ago
        rows.objects.filter(**{name: state}).update(state=state, finished_at=at)
    assert prune_finished() == len(set(rows.State.values) - unfinished - failed)
    assert rows.objects.filter(**{owner: "week"}).count() == len(rows.State.values)
    assert set(rows.objects.filter(**{owner: "hour"}).values_list(name, flat=True)) == unfinished | failed


def test_an_allowed_rebuild_still_finds_finished_tasks() -> None:
    d = TaskDispenser("hour")
    d.add("a", 1)
    Dispenser.objects.update(done_kept=3_600)
    DispenserTask.objects.update(state="done", finished_at=d.now() - datetime.timedelta(minutes=61))
    assert prune_finished() == 0
    DispenserTask.objects.update(finished_at=d.now() - datetime.timedelta(minutes=71))
    assert prune_finished() == 1


def test_keeps_a_task_that_is_retried_just_before_its_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    make_tasks("hour")
    Task.objects.exclude(key="skipped").delete()
    Task.objects.update(state="skipped", finished_at=timezone.now() - datetime.timedelta(days=9))
    remove = pruning.run_short_transaction

    def retried_first(*args: Any, **kwargs: Any) -> Any:
        Task.objects.retry()
        return remove(*args, **kwargs)

    monkeypatch.setattr(pruning, "run_short_transaction", retried_first)
    assert prune_finished() == 0
    assert Task.objects.get().state == "ready"


def test_removes_receipts_after_a_day() -> None:
    Receipt.objects.all().delete()
    old, young = (Receipt.objects.create(writer=name, number=1).pk for name in ("old", "young"))
    Receipt.objects.filter(pk=old).update(at=DbLater(-KEPT - 60))
    assert prune_finished() == 1
    assert [one.pk for one in Receipt.objects.all()] == [young]
