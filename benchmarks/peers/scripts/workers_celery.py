"""Celery on Redis: eight processes; moments by ETA."""

import datetime

from with_celery import app, submit_many, task, work
from worker_peer import Workers


def schedule(key: str, seconds: float) -> None:
    task.apply_async((key,), eta=datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds))


if __name__ == "__main__":
    Workers(prepare=app.connection().connect, submit_many=submit_many, schedule=schedule, work=work).main()
