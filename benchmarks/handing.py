"""Two ways to hand tasks out: the dispenser, and its statements sent by the plain driver."""

import time
from typing import Any

from django.db import connection

from resourcepool.db import dialect
from resourcepool.db.dialect import micros
from resourcepool.taskqueue import TaskDispenser
from resourcepool.taskqueue.dispenser import statements
from resourcepool.taskqueue.dispenser.bucket_lifecycle import WorkerBucket

WORKERS = 8
TTL = 600.0


class Ours:
    """A worker of a dispenser."""

    name = "resourcepool"

    def __init__(self, dispenser: str, worker: str, limit: int) -> None:
        self._dispenser, self._worker, self._limit = TaskDispenser(dispenser), worker, limit
        self._tasks: list[Any] = []
        self.notes: list[Any] = []

    def assign(self) -> None:
        self._tasks = self._dispenser.assign_tasks(self._limit, self._worker)

    def finish(self) -> None:
        self._dispenser.tasks_done(self._worker, self._tasks)

    def once(self) -> int:
        """Assign and finish; returns how many tasks."""
        self.assign()
        if self._tasks:
            self.finish()
        return len(self._tasks)

    def cycle(self, hold: float) -> float:
        began = time.monotonic()
        if self.once() < self._limit:
            raise RuntimeError("the pool is empty")
        return time.monotonic() - began


class Plain:
    """The same statements on the same session: that of Django's connection, without Django and without our code."""

    name = "plain driver"

    def __init__(self, dispenser: str, worker: str, limit: int) -> None:
        self._bucket = WorkerBucket("default", dispenser, worker, worker, TTL).open().bucket
        self._dispenser, self._worker, self._limit = dispenser, worker, limit
        self._texts, self._not_before = statements.texts(connection), dialect.of(connection).not_before
        session: Any = connection.connection
        self._session, self._cursor = session, session.cursor()
        self.notes: list[Any] = []

    def cycle(self, hold: float) -> float:
        began, name = time.monotonic(), self._dispenser
        execute, texts, cursor = self._cursor.execute, self._texts, self._cursor
        execute(texts.look, (name, name, self._worker, name, name))
        head = next(row for row in cursor.fetchall() if row[0] == "h")
        not_before = self._not_before.format(
            first="score", second="id", one=f"{float(head[2]):.16e}", other=head[1]
        )
        first = texts.first.format(and_not_before=f" AND {not_before}")
        execute("BEGIN")
        execute(texts.touch, (micros(TTL), self._bucket))
        execute(texts.held, (self._bucket,))
        cursor.fetchall()
        execute(first, (name, self._limit))
        rows = cursor.fetchall()
        if len(rows) < self._limit:
            raise RuntimeError("the pool is empty")
        execute(texts.take.format(ids=", ".join(str(row[0]) for row in rows)), (self._bucket,))
        execute("COMMIT")
        keys = [row[1] for row in rows]
        cases = " ".join(f"WHEN %s THEN {row[2] + 1}" for row in rows)
        done = texts.done.format(keys=", ".join(["%s"] * len(keys)), fences=cases)
        execute(done, (name, *keys, *keys, name, self._worker))
        if cursor.rowcount != len(rows):
            raise RuntimeError(f"{cursor.rowcount} of {len(rows)} were done")
        return time.monotonic() - began
