"""Timers whose handler is interrupted in a real Celery worker: because that is to end, or because it takes too long."""

import signal
import sys
import time
from typing import Any

from resourcepool.taskqueue import timers
from tests.app.rows import expire
from tests.contrib.celery_timers.test_celery_worker import STARTS_WITHIN, redis
from tests.servers.redis import Redis
from tests.spawned import Child, Spawner
from tests.taskqueue.timers.runners import due, over, states, timer, topic

__all__ = ["redis"]


def register(most: float | None) -> None:
    @timers.on("slow", max_runtime=most)
    def slow(one: Any) -> None:
        print(f"began {one.name} {one.attempt} {one.previous_end or 'first'}")
        while one.attempt == 1:
            time.sleep(0.01)


def work(most: float | None) -> None:
    from project.celery import app

    register(most)
    app.worker_main(["worker", "--concurrency=1", "--loglevel=INFO", "--without-gossip", "--without-mingle"])


def node(most: float | None) -> None:
    from django.core.management import call_command

    import project.celery  # noqa: F401 (the current app)

    register(most)
    call_command("resourcepool_celery_timers", stdout=sys.stdout)


def begun(spawn: Spawner, broker: Redis, most: float | None) -> Child:
    """Have a timer handled; return the worker."""
    due("a", topic="slow")
    spawn(node, most, CELERY_BROKER_URL=broker.url)
    worker = spawn(work, most, CELERY_BROKER_URL=broker.url)
    worker.line("began a 1 first", timeout=STARTS_WITHIN)
    return worker


def test_after_a_cold_shutdown_the_next_worker_handles_it_as_after_a_crash(
    redis: Redis, spawn: Spawner
) -> None:
    worker = begun(spawn, redis, None)
    worker.send(signal.SIGQUIT)
    worker.wait()
    assert states() == {"a": "running"}
    expire(timer("a"))
    second = spawn(work, None, CELERY_BROKER_URL=redis.url)
    second.line("began a 2 expired", timeout=STARTS_WITHIN)
    over(1)
    assert (states(), timer("a").failures, timer("a").crashes) == ({"a": "done"}, 0, 1)


def test_one_that_takes_longer_than_its_max_runtime_is_killed_which_is_a_crash(
    redis: Redis, spawn: Spawner
) -> None:
    topic("slow", ttl=2)
    begun(spawn, redis, 5).line("began a 2 expired", timeout=STARTS_WITHIN)
    over(1)
    assert (states(), timer("a").failures, timer("a").crashes) == ({"a": "done"}, 0, 1)
