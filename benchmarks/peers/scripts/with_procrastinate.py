"""procrastinate on PostgreSQL."""

import os
import sys

import procrastinate
from noting import note
from queue_peer import Queue

kind = procrastinate.PsycopgConnector if sys.argv[1] == "work" else procrastinate.SyncPsycopgConnector
app = procrastinate.App(connector=kind(conninfo=os.environ["URL"]))
task = app.task(name="note")(note)


def prepare() -> None:
    app.open()
    app.schema_manager.apply_schema()


def submit(key: str) -> None:
    task.defer(key=key)


def submit_many(keys: list[str]) -> None:
    task.batch_defer(*({"key": key} for key in keys))


def work(concurrency: int) -> None:
    app.run_worker(concurrency=concurrency)


if __name__ == "__main__":
    Queue(prepare=prepare, submit=submit, submit_many=submit_many, work=work).main()
