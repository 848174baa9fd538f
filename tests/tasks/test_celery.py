"""The Celery tasks with a real worker, beat and broker; and the entries for django-celery-beat."""

import signal
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from resourcepool.models import Job, Proxy
from resourcepool.sweeps.schedule import NOTE, Entry, EntryAction, InstalledEntry, plan
from tests.aliases import alias
from tests.app.rows import columns, expire, granted, new
from tests.eventually import eventually
from tests.servers.redis import redis_server
from tests.servers.server import ServerMissing
from tests.spawned import Spawner

OUT, SWEEP = "--install", "resourcepool: sweep"


def work() -> None:
    """Be a worker with two processes until SIGTERM."""
    from project.celery import app

    app.worker_main(["worker", "--concurrency=2", "--loglevel=INFO", "--without-gossip", "--without-mingle"])


def beat() -> None:
    """Be the beat until it is killed."""
    from project.celery import app

    app.start(["beat", "--max-interval=1", "--loglevel=INFO", "--pidfile="])


class BeatElsewhere:
    """A router that has django-celery-beat's tables in another database."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "second" if model._meta.app_label == "django_celery_beat" else None

    db_for_read = db_for_write


class FailsAtTheSecond:
    """A note that fails when it is written for the second time."""

    left = 1

    def format(self, every: int) -> str:
        self.left -= 1
        return str(every) if self.left == 0 else str(1 // 0)


def shown(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("resourcepool_beat", *arguments, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture(autouse=True)
def _no_entries() -> Iterator[None]:
    yield
    PeriodicTask.objects.all().delete()
    IntervalSchedule.objects.all().delete()


@pytest.fixture
def broker() -> Iterator[str]:
    try:
        with redis_server() as url:
            yield url
    except ServerMissing as missing:
        pytest.skip(str(missing))


def test_a_worker_and_a_beat_sweep_by_themselves(broker: str, spawn: Spawner) -> None:
    proxy = new(Proxy)
    granted(proxy, "dead")
    expire(proxy)
    shown("--install")
    second = IntervalSchedule.objects.create(every=1, period="seconds")
    PeriodicTask.objects.filter(name=SWEEP).update(interval=second)
    worker = spawn(work, CELERY_BROKER_URL=broker)
    worker.line("ready", timeout=60)
    spawn(beat, CELERY_BROKER_URL=broker)
    eventually(lambda: columns(proxy)["holder"] == "", within=60)
    eventually(lambda: Job.objects.filter(name="sweep", done_at__isnull=False).exists())
    worker.line("succeeded", timeout=30)
    worker.send(signal.SIGTERM)
    assert worker.wait(60) == 0, worker.output


class TestBeat:
    def test_shows_what_it_would_write_and_writes_nothing(self) -> None:
        lines = shown()
        assert "+ resourcepool: sweep: every 60 s" in lines
        assert lines[-1] == "3 to write: add --install."
        assert not PeriodicTask.objects.filter(name=SWEEP).exists()

    def test_installs_once(self) -> None:
        assert shown("--install")[-1] == "3 written."
        task = PeriodicTask.objects.get(name=SWEEP)
        assert (task.task, task.enabled, task.interval.every) == ("resourcepool.sweep", True, 60)
        assert shown("--install")[-1] == "Nothing to do."

    def test_installs_where_somebody_has_entered_the_same_interval_twice(self) -> None:
        twice = [IntervalSchedule.objects.create(every=60, period="seconds") for _ in range(2)]
        assert shown("--install")[-1] == "3 written."
        assert PeriodicTask.objects.get(name=SWEEP).interval in twice

    def test_keeps_what_an_operator_changed(self) -> None:
        shown("--install")
        hourly = IntervalSchedule.objects.create(every=1, period="hours")
        PeriodicTask.objects.filter(name=SWEEP).update(interval=hourly)
        PeriodicTask.objects.filter(name="resourcepool: statistics").update(enabled=False)
        lines = shown("--install")
        assert "  resourcepool: sweep: your change is kept (every 3600 s; default: every 60 s)" in lines
        assert "  resourcepool: statistics: your change is kept (switched off; default: every 60 s)" in lines
        assert PeriodicTask.objects.get(name=SWEEP).interval == hourly

    def test_removes_the_check_of_a_pool_that_is_not_checked_any_more(self, settings: Any) -> None:
        mine = "resourcepool: my own"
        checks = {"resourcepool.Proxy": {"url": "https://example.com/"}}
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": checks}
        assert shown("--install")[-1] == "4 written."
        minutely = IntervalSchedule.objects.get(every=60, period="seconds")
        PeriodicTask.objects.create(name=mine, task="mine", interval=minutely)
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {}}
        assert "- resourcepool: check resourcepool.Proxy: no longer in the settings" in shown()
        assert shown("--install")[-1] == "1 written."
        names = set(PeriodicTask.objects.values_list("name", flat=True))
        assert "resourcepool: check resourcepool.Proxy" not in names
        assert mine in names

    def test_writes_where_the_router_sends_them_all_of_them_or_nothing(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with alias("second", leased=False):
            settings.DATABASE_ROUTERS = [BeatElsewhere()]
            with CaptureQueriesContext(connection) as in_the_default_one:
                with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
                    patched.setattr("resourcepool.sweeps.schedule.NOTE", FailsAtTheSecond())
                    shown("--install")
                assert shown()[-1] == "3 to write: add --install."
                assert shown("--install")[-1] == "3 written."
            settings.DATABASE_ROUTERS = []
        assert in_the_default_one.captured_queries == []

    def test_without_django_celery_beat_says_what_to_install(self, settings: Any) -> None:
        settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != "django_celery_beat"]
        with pytest.raises(
            CommandError,
            match=r"^INSTALLED_APPS: django_celery_beat is missing; run `pip install ",
        ):
            shown()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, EntryAction.ADD),
        (InstalledEntry(60, True, "anything"), EntryAction.NOTHING),
        (InstalledEntry(30, True, NOTE.format(every=30)), EntryAction.CHANGE),  # an older version of ours
        (InstalledEntry(30, True, NOTE.format(every=60)), EntryAction.KEEP),
        (InstalledEntry(30, True, "mine"), EntryAction.KEEP),
        (InstalledEntry(60, False, NOTE.format(every=60)), EntryAction.KEEP),
        (InstalledEntry(0, True, NOTE.format(every=60)), EntryAction.KEEP),
    ],
)
def test_what_becomes_of_an_entry(found: InstalledEntry | None, expected: EntryAction) -> None:
    entry = Entry("resourcepool: sweep", "resourcepool.sweep", 60)
    assert plan([entry], {} if found is None else {entry.name: found}) == [(expected, entry)]
