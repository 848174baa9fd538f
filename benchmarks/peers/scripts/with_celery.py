"""Celery on Redis."""

import os

from celery import Celery, group
from noting import note
from queue_peer import Queue

app = Celery(broker=os.environ["URL"])
app.conf.task_ignore_result = True
task = app.task(name="note")(note)


def submit_many(keys: list[str]) -> None:
    group(task.s(key) for key in keys).apply_async()


def work(concurrency: int) -> None:
    app.worker_main(["worker", f"--concurrency={concurrency}", "--loglevel=ERROR"])


if __name__ == "__main__":
    Queue(prepare=app.connection().connect, submit=task.delay, submit_many=submit_many, work=work).main()
