"""A due entry is noted as run, and its Celery task submitted, by the leading beat only, and holds up no other."""

import datetime
import decimal
import json
import uuid
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask
from kombu.utils.json import dumps

from project.celery import app
from resourcepool.celery_beat import BROKER_RETRY, STREAM, LeasedDatabaseScheduler, send
from resourcepool.elections import Election
from resourcepool.exceptions import BadOption, LeaseLost
from resourcepool.models import Stream, Task
from resourcepool.taskqueue import GivenBack
from tests.app.rows import steal

LONG_AGO = timezone.now() - datetime.timedelta(hours=2)


@pytest.fixture
def beat(monkeypatch: pytest.MonkeyPatch) -> Iterator[LeasedDatabaseScheduler]:
    """A beat that leads; its tasks stay in the stream."""
    PeriodicTask.objects.all().delete()
    Stream.objects.create(name=STREAM)
    with suppress(LeaseLost), Election(STREAM, Stream).campaign() as term:
        scheduler = LeasedDatabaseScheduler(app=app, lazy=True)
        monkeypatch.setattr(scheduler, "_term_of_this_beat", lambda: term)
        yield scheduler
    PeriodicTask.objects.all().delete()
    IntervalSchedule.objects.all().delete()
    CrontabSchedule.objects.all().delete()


def entry(name: str, **options: Any) -> PeriodicTask:
    hourly, _ = IntervalSchedule.objects.get_or_create(every=1, period=IntervalSchedule.HOURS)
    made: PeriodicTask = PeriodicTask.objects.create(
        name=name, task=name, interval=hourly, last_run_at=LONG_AGO, **options
    )
    return made


def runs(name: str) -> int:
    return int(PeriodicTask.objects.get(name=name).total_run_count)


def start(beat: LeasedDatabaseScheduler, read: Any) -> None:
    """Start an entry as it was read."""
    beat._term = beat._term_of_this_beat()
    beat.reserve(read)
    beat.apply_entry(read)


def turned(beat: LeasedDatabaseScheduler) -> dict[str, Any]:
    """Let it start due entries; return {Celery task: its message}."""
    for _ in range(20):
        beat.tick()
    return {sent["task"]: sent for sent in map(json.loads, Task.objects.values_list("params", flat=True))}


@pytest.mark.parametrize(
    "bad", [{"kwargs": json.dumps({"text": "x" * 70_000})}, {"args": json.dumps(["x" * 70_000])}]
)
def test_an_entry_that_is_too_large_is_passed_over_and_the_others_are_started(
    beat: LeasedDatabaseScheduler, bad: dict[str, str]
) -> None:
    entry("a bad one", **bad)
    entry("a good one")
    assert list(turned(beat)) == ["a good one"]
    assert PeriodicTask.objects.get(name="a bad one").last_run_at > LONG_AGO


@pytest.mark.parametrize("name", ["a\tb", " a ", "a\nb", "😀" * 200])
def test_an_entry_may_have_any_name(beat: LeasedDatabaseScheduler, name: str) -> None:
    entry(name)
    assert list(turned(beat)) == [name]


def test_seconds_until_an_entry_expires_count_from_when_it_was_due_not_from_when_the_broker_is_back(
    beat: LeasedDatabaseScheduler,
) -> None:
    entry("soon over", expire_seconds=60)
    expires = datetime.datetime.fromisoformat(turned(beat)["soon over"]["options"]["expires"])
    ran_at = PeriodicTask.objects.get(name="soon over").last_run_at
    assert expires == ran_at + datetime.timedelta(seconds=60)


def test_an_entry_is_noted_as_run_and_submitted_in_a_lane_of_its_own(beat: LeasedDatabaseScheduler) -> None:
    row = entry("hourly")
    assert turned(beat)["hourly"]["task"] == "hourly"
    assert Task.objects.get().lane == str(row.pk)
    assert (runs("hourly"), PeriodicTask.objects.get().last_run_at > LONG_AGO) == (1, True)


@pytest.mark.parametrize(
    ("meanwhile", "count"),
    [({"total_run_count": 1}, 1), ({"enabled": False}, 0)],
    ids=["another beat has run it", "it was switched off"],
)
def test_an_entry_that_was_changed_after_it_was_read_is_not_run(
    meanwhile: dict[str, Any], count: int, beat: LeasedDatabaseScheduler
) -> None:
    entry("hourly")
    read = beat.schedule["hourly"]
    PeriodicTask.objects.update(**meanwhile)
    start(beat, read)
    assert (runs("hourly"), Task.objects.count()) == (count, 0)


def test_a_beat_that_does_not_lead_any_more_runs_nothing(beat: LeasedDatabaseScheduler) -> None:
    entry("hourly")
    read = beat.schedule["hourly"]
    steal(Stream.objects.get(), holder="another beat")
    with pytest.raises(LeaseLost):
        start(beat, read)
    assert (runs("hourly"), Task.objects.count()) == (0, 0)


@pytest.mark.parametrize("stream", [STREAM, "removed"])
def test_an_entry_whose_task_cannot_be_submitted_is_not_noted_as_run(
    stream: str, beat: LeasedDatabaseScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    entry("hourly")
    monkeypatch.setattr("resourcepool.celery_beat.STREAM", stream)
    if stream == STREAM:
        monkeypatch.setattr("resourcepool.celery_beat.submit", refuse)
    with pytest.raises(ZeroDivisionError if stream == STREAM else BadOption):
        start(beat, beat.schedule["hourly"])
    assert runs("hourly") == 0


def test_a_disabled_or_deleted_entry_is_not_started_and_an_edited_one_once(
    beat: LeasedDatabaseScheduler,
) -> None:
    disabled, deleted, edited = entry("disabled"), entry("deleted"), entry("edited")
    assert len(beat.schedule) == 3
    PeriodicTask.objects.filter(pk=disabled.pk).update(enabled=False)
    PeriodicTask.objects.filter(pk=deleted.pk).delete()
    PeriodicTask.objects.filter(pk=edited.pk).update(total_run_count=7)
    assert list(turned(beat)) == ["edited"]
    assert PeriodicTask.objects.get(name="edited").total_run_count == 8


def test_a_crontab_of_a_single_hour_that_was_missed_is_run_when_beat_is_back(
    beat: LeasedDatabaseScheduler,
) -> None:
    away = timezone.now() + datetime.timedelta(hours=12)
    daily = CrontabSchedule.objects.create(hour=str(away.hour), minute="0", timezone="UTC")
    missed = timezone.now() - datetime.timedelta(days=2)
    PeriodicTask.objects.create(name="daily", task="daily", crontab=daily, last_run_at=missed)
    assert list(turned(beat)) == ["daily"]


def test_an_entry_that_is_saved_from_a_copy_that_was_read_before_it_ran_is_not_run_again(
    beat: LeasedDatabaseScheduler,
) -> None:
    copy = PeriodicTask.objects.get(pk=entry("hourly").pk)
    assert list(turned(beat)) == ["hourly"]
    copy.description = "edited in the admin, in a form that was opened before"
    copy.save()
    turned(beat)
    beat._invalidate()
    turned(beat)
    assert Task.objects.count() == 1
    assert PeriodicTask.objects.get().last_run_at > LONG_AGO
    PeriodicTask.objects.update(last_run_at=LONG_AGO)
    beat._invalidate()
    turned(beat)
    assert Task.objects.count() == 2, "its next run is one of its own"


ARGUMENTS = [
    datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC),
    datetime.date(2026, 1, 2),
    decimal.Decimal("1.10"),
    uuid.UUID(int=7),
    {"名": [1, None]},
]


def test_arguments_that_only_celery_has_json_for_arrive_as_they_are(
    beat: LeasedDatabaseScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(app, "send_task", lambda *args, **options: sent.append((args, options)))
    app.set_default()
    entry(
        "typed", args=dumps(ARGUMENTS), kwargs=dumps({"at": ARGUMENTS[0]}), headers=dumps({"on": ARGUMENTS[1]})
    )
    params = turned(beat)["typed"]
    send(SimpleNamespace(params=params))  # type: ignore[arg-type]
    ((_, args, kwargs), options) = sent[0]
    assert (args, kwargs) == (ARGUMENTS, {"at": ARGUMENTS[0]})
    assert options["headers"]["on"] == ARGUMENTS[1]
    assert options["task_id"] == params["id"]


def test_a_broker_that_answers_nothing_is_asked_again_later(
    beat: LeasedDatabaseScheduler, mute_broker: None
) -> None:
    entry("hourly")
    with pytest.raises(GivenBack, match="OperationalError") as given:
        send(SimpleNamespace(params=turned(beat)["hourly"]))  # type: ignore[arg-type]
    assert given.value.after == BROKER_RETRY


def test_an_entry_of_one_run_is_started_once(beat: LeasedDatabaseScheduler) -> None:
    entry("once", one_off=True)
    assert list(turned(beat)) == ["once"]
    assert Task.objects.count() == 1
