"""Old finished tasks of dispensers are removed."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.db.dialect import DbLater
from resourcepool.db.receipts import KEPT
from resourcepool.models import Dispenser, DispenserTask, Receipt
from resourcepool.sweeps import pruning
from resourcepool.sweeps.pruning import prune_finished
from resourcepool.taskqueue import TaskDispenser

STATES = [state.value for state in DispenserTask.State]


def test_removes_old_finished_tasks_but_not_failed_or_unfinished_ones() -> None:
    for name, kept in (("week", 7 * 86_400), ("hour", 3_600)):
        TaskDispenser(name).add_many(dict.fromkeys(STATES, 1))
        Dispenser.objects.filter(pk=name).update(done_kept=kept)
    a_day_ago = timezone.now() - datetime.timedelta(days=1)
    for state in STATES:
        at = None if state in ("ready", "assigned") else a_day_ago
        DispenserTask.objects.filter(key=state).update(state=state, finished_at=at)
    assert prune_finished() == 2
    assert DispenserTask.objects.filter(dispenser_id="week").count() == len(STATES)
    left = set(DispenserTask.objects.filter(dispenser_id="hour").values_list("key", flat=True))
    assert left == {"ready", "assigned", "failed"}


def test_an_allowed_rebuild_still_finds_finished_tasks() -> None:
    d = TaskDispenser("hour")
    d.add("a", 1)
    Dispenser.objects.update(done_kept=3_600)
    DispenserTask.objects.update(state="done", finished_at=d.now() - datetime.timedelta(minutes=61))
    assert prune_finished() == 0
    DispenserTask.objects.update(finished_at=d.now() - datetime.timedelta(minutes=71))
    assert prune_finished() == 1


def test_keeps_a_task_that_is_retried_just_before_its_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    TaskDispenser("hour").add("a", 1)
    DispenserTask.objects.update(state="discarded", finished_at=timezone.now() - datetime.timedelta(days=9))
    remove = pruning.run_short_transaction

    def retried_first(*args: Any, **kwargs: Any) -> Any:
        DispenserTask.objects.retry()
        return remove(*args, **kwargs)

    monkeypatch.setattr(pruning, "run_short_transaction", retried_first)
    assert prune_finished() == 0
    assert DispenserTask.objects.get().state == "ready"


def test_removes_receipts_after_a_day() -> None:
    Receipt.objects.all().delete()
    old, young = (Receipt.objects.create(writer=name, number=1).pk for name in ("old", "young"))
    Receipt.objects.filter(pk=old).update(at=DbLater(-KEPT - 60))
    assert prune_finished() == 1
    assert [one.pk for one in Receipt.objects.all()] == [young]
