"""huey on Redis, or on SQLite where there is no URL: eight processes; moments by schedule."""

import os
from pathlib import Path

from huey import RedisHuey, SqliteHuey
from noting import note
from worker_peer import Workers

URL = os.environ["URL"]
huey = RedisHuey("bench", url=URL) if URL else SqliteHuey("bench", filename=str(Path("huey.db").resolve()))
task = huey.task()(note)


def submit_many(keys: list[str]) -> None:
    for key in keys:
        task(key)


def schedule(key: str, seconds: float) -> None:
    task.schedule((key,), delay=seconds)


def work(workers: int) -> None:
    huey.create_consumer(workers=workers, worker_type="process").run()


if __name__ == "__main__":
    Workers(prepare=huey.pending_count, submit_many=submit_many, schedule=schedule, work=work).main()
