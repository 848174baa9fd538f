"""Timers that are handed over to a real Celery worker by a real broker, also while these crash."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool.contrib.celery_timers import apply_async_at
from resourcepool.taskqueue import timers
from tests.app.rows import expire
from tests.eventually import eventually
from tests.servers.redis import Redis
from tests.servers.server import ServerMissing
from tests.spawned import Child, Spawner
from tests.taskqueue.timers.runners import WITHIN, due, over, states, timer, topic

STARTS_WITHIN = 90  # seconds


@pytest.fixture
def redis() -> Iterator[Redis]:
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(Redis())
        except ServerMissing as missing:
            pytest.skip(str(missing))
        yield server


def work() -> None:
    """Be a worker with one process that has the handlers, until it is killed."""
    from celery import shared_task

    from project.celery import app

    @timers.on("slow")
    def slow(one: Any) -> None:
        print(f"began {one.name} {one.attempt} {one.previous_end or 'first'}")
        while one.attempt == 1:
            time.sleep(0.01)

    @shared_task(name="tests.note", bind=True)
    def note(task: Any, *words: str) -> None:
        print(f"noted {' '.join(words)} {task.request.id}")

    app.worker_main(["worker", "--concurrency=1", "--loglevel=INFO", "--without-gossip", "--without-mingle"])


def node(command: str = "resourcepool_timers") -> None:
    """Run a node, by default one that sends Celery tasks at their time, until stopped."""
    from django.core.management import call_command

    import project.celery  # noqa: F401 (the current app)

    @timers.on("slow")
    def slow(_one: Any) -> None:
        print("not here", flush=True)

    call_command(command, stdout=sys.stdout)


def worker_of(spawn: Spawner, broker: Redis) -> Child:
    worker = spawn(work, CELERY_BROKER_URL=broker.url)
    worker.line("ready", timeout=STARTS_WITHIN)
    return worker


def kill(worker: Child) -> None:
    """Kill the worker and its pool's process."""
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def test_a_worker_is_killed_half_way_and_the_next_one_is_told_so(redis: Redis, spawn: Spawner) -> None:
    due("a", topic="slow")
    handing = spawn(node, "resourcepool_celery_timers", CELERY_BROKER_URL=redis.url)
    first = worker_of(spawn, redis)
    first.line("began a 1 first", timeout=STARTS_WITHIN)
    kill(first)
    assert timer("a").state == "running"
    expire(timer("a"))
    second = worker_of(spawn, redis)
    second.line("began a 2 expired", timeout=STARTS_WITHIN)
    over(1)
    assert (timer("a").crashes, states()) == (1, {"a": "done"})
    assert "not here" not in handing.output
    handing.send(signal.SIGTERM)
    assert handing.wait() == 0


def test_a_broker_that_is_away_and_one_that_forgets_lose_nothing(redis: Redis, spawn: Spawner) -> None:
    topic("slow")
    handing = spawn(node, "resourcepool_celery_timers", CELERY_BROKER_URL=redis.url)
    handing.line("handling timers", timeout=STARTS_WITHIN)
    redis.kill()
    due("a", topic="slow")
    fence = timer("a").fence
    handing.line("cannot be handed over", timeout=STARTS_WITHIN)
    assert timer("a").fence == fence
    redis.start()
    eventually(lambda: timer("a").fence > fence, WITHIN)
    redis.kill()  # it keeps nothing on disk: the message is gone
    redis.start()
    expire(timer("a"))
    worker = worker_of(spawn, redis)
    worker.line("began a 1 first", timeout=STARTS_WITHIN)


def test_a_celery_task_arrives_at_its_time(redis: Redis, spawn: Spawner) -> None:
    worker = worker_of(spawn, redis)
    apply_async_at("tests.note", after=0.5, args=["once"], name="once")
    apply_async_at("tests.note", after=3_600, args=["later"], name="later")
    usual = spawn(node, CELERY_BROKER_URL=redis.url)
    worker.line("noted once", timeout=STARTS_WITHIN)
    over(1)
    usual.send(signal.SIGTERM)
    assert usual.wait() == 0
    assert states() == {"once": "done", "later": "pending"}
    assert "noted later" not in worker.output
