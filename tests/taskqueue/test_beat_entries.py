"""A due entry is noted as run, and its Celery task submitted, by one beat only: the one that leads."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from project.celery import app
from resourcepool.celery_beat import STREAM, LeasedDatabaseScheduler
from resourcepool.elections import Election
from resourcepool.exceptions import LeaseLost
from resourcepool.models import Stream, Task
from tests.app.rows import steal


@pytest.fixture(autouse=True)
def _one_entry() -> Iterator[None]:
    Stream.objects.create(name=STREAM)
    every = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.HOURS)
    PeriodicTask.objects.create(name="hourly", task="reports.make", interval=every, args='["名"]')
    yield
    PeriodicTask.objects.all().delete()
    IntervalSchedule.objects.all().delete()


def beat() -> Any:
    """Return a scheduler that has read the entries, and leads."""
    scheduler = LeasedDatabaseScheduler(app=app, lazy=True)
    scheduler._term = Election(STREAM, Stream).try_now()
    return scheduler


def start(scheduler: Any, entry: Any) -> None:
    scheduler.reserve(entry)
    scheduler.apply_entry(entry)


def runs() -> int:
    return int(PeriodicTask.objects.get(name="hourly").total_run_count)


def test_an_entry_is_noted_as_run_and_submitted_in_a_lane_of_its_own() -> None:
    scheduler = beat()
    start(scheduler, scheduler.schedule["hourly"])
    row = Task.objects.get()
    assert (runs(), row.lane) == (1, str(PeriodicTask.objects.get(name="hourly").pk))
    assert json.loads(row.params)["task"] == "reports.make"
    assert PeriodicTask.objects.get(name="hourly").last_run_at is not None


def test_an_entry_that_another_beat_has_run_in_the_meantime_is_not_run_again() -> None:
    scheduler = beat()
    entry = scheduler.schedule["hourly"]
    PeriodicTask.objects.filter(name="hourly").update(total_run_count=1)
    start(scheduler, entry)
    assert runs() == 1
    assert not Task.objects.exists()


def test_an_entry_that_was_switched_off_in_the_meantime_is_not_run() -> None:
    scheduler = beat()
    entry = scheduler.schedule["hourly"]
    PeriodicTask.objects.filter(name="hourly").update(enabled=False)
    start(scheduler, entry)
    assert not Task.objects.exists()


def test_a_beat_that_does_not_lead_any_more_runs_nothing() -> None:
    scheduler = beat()
    entry = scheduler.schedule["hourly"]
    steal(Stream.objects.get(), holder="another beat")
    with pytest.raises(LeaseLost):
        start(scheduler, entry)
    assert runs() == 0
    assert not Task.objects.exists()


def test_an_entry_whose_task_cannot_be_submitted_is_not_noted_as_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("resourcepool.celery_beat.submit", refuse)
    scheduler = beat()
    with pytest.raises(ZeroDivisionError):
        start(scheduler, scheduler.schedule["hourly"])
    assert runs() == 0
