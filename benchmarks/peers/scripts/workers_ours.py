"""Ours: eight processes, each a node of timers, and a worker of the dispenser that takes 20 tasks at a time."""

import datetime
import os
import signal
import threading

import django
from noting import note
from worker_peer import Workers

django.setup()

from django.conf import settings  # noqa: E402 (Django is set up first)

from resourcepool.taskqueue import TaskDispenser, timers  # noqa: E402

if hints := os.environ["BENCH_HINTS"]:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HINTS": hints}

POOL = TaskDispenser("bench")
AT_ONCE, REST = 20, 0.02  # tasks; seconds when there are none


def submit_many(keys: list[str]) -> None:
    POOL.add_many(dict.fromkeys(keys, 1.0))


def schedule(key: str, seconds: float) -> None:
    timers.schedule(key, after=datetime.timedelta(seconds=max(0.0, seconds)), topic="bench")


def work(workers: int) -> None:
    timers.on("bench")(lambda timer: note(timer.name))
    runner, is_over = timers.TimerRunner(threads=2), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: (is_over.set(), runner.stop()))
    threading.Thread(target=_drain, args=(is_over,), daemon=True).start()
    runner.run()


def _drain(is_over: threading.Event) -> None:
    worker = f"worker {os.getpid()}"
    while not is_over.is_set():
        tasks = POOL.assign_tasks(AT_ONCE, worker)
        for task in tasks:
            note(task.key)
        if tasks:
            POOL.tasks_done(worker, tasks)
        else:
            is_over.wait(REST)


if __name__ == "__main__":
    Workers(
        prepare=POOL.size, submit_many=submit_many, schedule=schedule, work=work, is_process_each=True
    ).main()
