"""Several beats: one leads, another takes over, and each due entry is started once."""

import datetime
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.db import OperationalError, connection
from django.utils import timezone
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from project.celery import app
from resourcepool import celery_beat
from resourcepool.celery_beat import DEFAULTS, STREAM, LeasedDatabaseScheduler
from resourcepool.db.threads import Daemon
from resourcepool.models import Stream, Task
from tests.eventually import eventually
from tests.servers.redis import Redis, redis_server
from tests.servers.server import ServerMissing
from tests.spawned import Child, Spawner

SOON = 60
LONG_AGO = timezone.now() - datetime.timedelta(days=2)


def beat() -> None:
    """Be a beat until SIGTERM."""
    from project.celery import app

    scheduler = "resourcepool.celery_beat:LeasedDatabaseScheduler"
    app.start(["beat", "--max-interval=1", "--loglevel=INFO", "--pidfile=", "-S", scheduler])


def sigterm(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def sigterm_replaced_by_an_error(*_: object, **__: object) -> None:
    """As drivers do whose session was interrupted in the middle of a statement."""
    try:
        sigterm()
    except SystemExit:
        raise OperationalError("commands out of sync") from None


def beat_that_is_told_to_end(where: str, how: str) -> None:
    """Be a beat that gets SIGTERM in the middle of its work; say so if it waits for others within a transaction."""
    join = Daemon.join

    def said(daemon: Daemon, seconds: float) -> None:
        print("waits within a transaction" if connection.in_atomic_block else "waits", flush=True)
        join(daemon, seconds)

    Daemon.join = said  # type: ignore[method-assign]
    tell = {"sigterm": sigterm, "replaced": sigterm_replaced_by_an_error}[how]
    if where == "at its start":
        of: Any = DatabaseScheduler
        of.Entry.from_entry = tell
    else:
        celery_beat.submit = tell  # type: ignore[assignment]
    beat()


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


def sent(url: str) -> list[str]:
    """Return the ids of the Celery tasks that the broker was given."""
    messages = redis.Redis.from_url(url).lrange("celery", 0, -1)
    return [json.loads(message)["headers"]["id"] for message in messages]


def leader() -> str:
    row: Any = Stream.objects.filter(pk=STREAM).first()
    return "" if row is None else row.holder


def test_each_due_entry_is_started_once_by_three_beats_of_which_the_leader_is_killed(
    broker: str, spawn: Spawner
) -> None:
    Stream.objects.create(name=STREAM, term_ttl=1, lanes=8)
    every = IntervalSchedule.objects.create(every=200, period=IntervalSchedule.MICROSECONDS)
    PeriodicTask.objects.create(name="often", task="reports.make", interval=every, args='["名"]')
    PeriodicTask.objects.exclude(name="often").update(enabled=False)
    beats: dict[int, Child] = {}
    for _ in range(3):
        child = spawn(beat, CELERY_BROKER_URL=broker)
        beats[child.pid] = child

    def ran() -> int:
        return int(PeriodicTask.objects.get(name="often").total_run_count)

    eventually(lambda: ran() >= 5 and sent(broker), SOON, lambda: [child.output for child in beats.values()])
    first = leader()
    killed = next(child for pid, child in beats.items() if str(pid) in first)
    killed.kill()
    before = ran()
    eventually(lambda: leader() not in ("", first) and ran() >= before + 5, SOON)
    PeriodicTask.objects.update(enabled=False)
    eventually(lambda: not Task.objects.unfinished().exists(), SOON)
    ids = sent(broker)
    assert len(set(ids)) == ran()
    assert len(ids) - len(set(ids)) <= 1, "only what was being sent just when the leader was killed"


def test_what_is_due_while_the_broker_is_away_waits_for_it_and_has_not_failed(spawn: Spawner) -> None:
    try:
        server = Redis()
    except ServerMissing as missing:
        pytest.skip(str(missing))
    Stream.objects.create(name=STREAM, term_ttl=1, lanes=8, retries=0, on_failure="skip")
    every = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.DAYS)
    missed = timezone.now() - datetime.timedelta(days=2)
    PeriodicTask.objects.create(name="daily", task="reports.make", interval=every, last_run_at=missed)
    PeriodicTask.objects.exclude(name="daily").update(enabled=False)
    with server:
        server.kill()
        spawn(beat, CELERY_BROKER_URL=server.url)
        eventually(lambda: Task.objects.filter(attempts__gte=2).exists(), SOON, Task.objects.values)
        waiting = Task.objects.get()
        assert (waiting.failures, waiting.finished_at) == (0, None)
        assert "OperationalError" in waiting.outcome
        server.start()
        eventually(lambda: sent(server.url), SOON)
        eventually(lambda: Task.objects.filter(state=Task.State.DONE).exists(), SOON)
        assert len(sent(server.url)) == 1


@pytest.mark.parametrize("where", ["at its start", "while it notes a run"])
@pytest.mark.parametrize("how", ["sigterm", "replaced"])
def test_sigterm_ends_a_beat_at_once_whatever_it_does_just_then(spawn: Spawner, where: str, how: str) -> None:
    Stream.objects.create(name=STREAM)
    every = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.DAYS)
    PeriodicTask.objects.create(name="daily", task="reports.make", interval=every, last_run_at=LONG_AGO)
    child = spawn(beat_that_is_told_to_end, where, how, CELERY_BROKER_URL="memory://")
    assert child.wait() == 0
    assert "waits within a transaction" not in child.output
    assert ("waits" in child.output) == (where == "while it notes a run")
    assert (leader(), runs("daily"), Task.objects.count()) == ("", 0, 0)


def runs(name: str) -> int:
    return int(PeriodicTask.objects.get(name=name).total_run_count)


def test_a_stream_that_is_deleted_while_beat_runs_is_made_again_by_the_same_beat() -> None:
    running = LeasedDatabaseScheduler(app=app, lazy=True)
    try:
        first = eventually(running._term_of_this_beat, SOON)
        assert first is not None
        Stream.objects.filter(pk=STREAM)._raw_delete("default")
        eventually(lambda: running._term_of_this_beat() not in (None, first), SOON)
        assert Stream.objects.get(pk=STREAM).done_kept == DEFAULTS["done_kept"]
    finally:
        running.close()
