"""Timers whose handler is interrupted in a real Celery worker: because that is to end, or because it takes too long."""

import os
import signal
import sys
import time
from typing import Any

import pytest

from resourcepool.taskqueue import timers
from tests.contrib.celery_timers.test_celery_worker import STARTS_WITHIN, redis
from tests.servers.redis import Redis
from tests.spawned import Child, Spawner
from tests.taskqueue.timers.runners import due, over, states, timer, topic

__all__ = ["redis"]


def register(most: float | None, *, is_deaf: bool = False) -> None:
    @timers.on("slow", max_runtime=most)
    def slow(one: Any) -> None:
        if is_deaf:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(f"began {one.name} {one.attempt} {one.previous_end or 'first'}; in {os.getpid()}")
        while one.attempt == 1:
            time.sleep(0.01)


def work(most: float | None, is_deaf: bool) -> None:
    from project.celery import app

    if not is_deaf:
        let_it_write()
    register(most, is_deaf=is_deaf)
    app.worker_main(["worker", "--concurrency=1", "--loglevel=INFO", "--without-gossip", "--without-mingle"])


def let_it_write() -> None:
    """Have Celery leave a process a minute until it is killed, not 0.1 s, in which a busy machine writes no end."""
    from billiard.popen_fork import Popen

    wait = Popen.wait
    Popen.wait = lambda self, timeout=None: wait(self, 60 if timeout == 0.1 else timeout)


def node(most: float | None) -> None:
    from django.core.management import call_command

    import project.celery  # noqa: F401 (the current app)

    register(most)
    call_command("resourcepool_celery_timers", stdout=sys.stdout)


def begun(spawn: Spawner, broker: Redis, most: float | None, *, is_deaf: bool = False) -> tuple[Child, int]:
    """Have a timer handled; return the worker, and the process of its pool in which the handler runs."""
    due("a", topic="slow")
    spawn(node, most, CELERY_BROKER_URL=broker.url)
    worker = spawn(work, most, is_deaf, CELERY_BROKER_URL=broker.url)
    said = worker.line("began a 1 first", timeout=STARTS_WITHIN)
    return worker, int(said.split()[-1])


@pytest.mark.parametrize("most", [None, 3_600])
def test_a_cold_shutdown_gives_it_back(redis: Redis, spawn: Spawner, most: float | None) -> None:
    topic("slow", max_crashes=1)
    worker, _pid = begun(spawn, redis, most)
    worker.send(signal.SIGQUIT)
    worker.wait()
    assert "is released: its process has to exit" in worker.output
    assert (timer("a").failures, timer("a").crashes, timer("a").previous_end) == (0, 0, "released")
    second = spawn(work, most, False, CELERY_BROKER_URL=redis.url)
    second.line("began a 2 released", timeout=STARTS_WITHIN)
    over(1)
    assert states() == {"a": "done"}


def test_a_process_of_the_pool_that_is_told_to_end_gives_it_back(redis: Redis, spawn: Spawner) -> None:
    """As systemd does, which tells all processes of a service."""
    topic("slow", max_crashes=1)
    worker, pid = begun(spawn, redis, None)
    os.kill(pid, signal.SIGTERM)
    worker.line("began a 2 released", timeout=STARTS_WITHIN)
    over(1)
    assert (states(), timer("a").failures, timer("a").crashes) == ({"a": "done"}, 0, 0)


def test_one_that_takes_longer_than_its_max_runtime_has_failed(redis: Redis, spawn: Spawner) -> None:
    topic("slow", max_crashes=1)
    begun(spawn, redis, 5)
    over(1)
    assert (states(), timer("a").failures, timer("a").crashes) == ({"a": "dead"}, 1, 0)
    assert timer("a").outcome == "it ran longer than its max_runtime of 5 s"


def test_and_is_tried_again_if_its_topic_says_so(redis: Redis, spawn: Spawner) -> None:
    topic("slow", max_crashes=1, retries=1, retry_delay=0)
    worker, _pid = begun(spawn, redis, 5)
    worker.line("began a 2 released", timeout=STARTS_WITHIN)
    over(1)
    assert (states(), timer("a").failures) == ({"a": "done"}, 1)


def test_one_that_cannot_be_interrupted_is_killed_which_is_a_death(redis: Redis, spawn: Spawner) -> None:
    topic("slow", ttl=2)
    worker, _pid = begun(spawn, redis, 5, is_deaf=True)
    worker.line("began a 2 expired", timeout=STARTS_WITHIN)
    over(1)
    assert (states(), timer("a").failures, timer("a").crashes) == ({"a": "done"}, 0, 1)
