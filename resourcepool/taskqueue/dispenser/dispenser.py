"""The dispenser: it assigns tasks in buckets, each to one worker, and loses none when a worker crashes."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from django.db import connections

from resourcepool import options
from resourcepool.db.dialect import DbNow, for_project
from resourcepool.db.retry import retrying
from resourcepool.db.rows import batched
from resourcepool.options import Seconds
from resourcepool.taskqueue.abstract import CHUNK
from resourcepool.taskqueue.dispenser import bucket_lifecycle, statements, validation
from resourcepool.taskqueue.dispenser.models import Bucket, DispenserTask
from resourcepool.taskqueue.dispenser.rebuild import Rebuilt, chunks, clock, put, rebuild
from resourcepool.taskqueue.dispenser.validation import Assigned

MIN_TTL = 0.1  # seconds
MAX_BUCKET_TASKS = 10_000


class Done(StrEnum):
    """The result of ``tasks_done`` for a task."""

    DONE = "done"
    STALE = "stale"  # assigned again meanwhile, returned to the pool, or finished by another call
    UNKNOWN = "unknown"  # there is no such task


class ReadyTasks:
    """The ready tasks of a dispenser, each with a key, unique there, and a score."""

    def __init__(self, name: str) -> None:
        self._name, self._using = name, bucket_lifecycle.database()

    def add(self, task: str | int, priority: float) -> bool:
        """Add a task; returns whether it is new. See ``add_many``."""
        return bool(self._add({validation.key(task, "task"): validation.score(priority)}))

    def add_many(self, mapping: Mapping[Any, float]) -> int:
        """Add {key: score}, in transactions of 1,000, or all in the caller's transaction; returns how many are new.

        A ready key gets the new score; an assigned or failed key is not changed; a finished key is new work.

        Raises:
            BadOption: a key or a score is not allowed; nothing was added.
            DatabaseUnavailable: some keys may have been added; the call can be repeated.
        """
        return self._add(validation.scores(mapping))

    def _add(self, scores: Mapping[str, float]) -> int:
        bucket_lifecycle.make_dispenser(self._using, self._name)
        put_chunk = partial(put, connections[self._using], self._name)
        return sum(self._commit(partial(put_chunk, chunk)).added for chunk in chunks(scores))

    def clear(self) -> int:
        """Remove all ready tasks; returns their number. Workers keep their tasks."""
        connection = connections[self._using]
        rows = retrying(connection, partial(statements.ready, connection, self._name))
        chunks_of_fences = map(statements.fences_of, batched(rows, CHUNK))
        return sum(self._commit(partial(statements.retire, connection, each)) for each in chunks_of_fences)

    def size(self) -> int:
        """Return the number of ready tasks."""
        rows = DispenserTask.objects.using(self._using).filter(dispenser_id=self._name, state="ready")
        return int(retrying(connections[self._using], rows.count))

    def _commit(self, send: Callable[[], Any]) -> Any:
        return bucket_lifecycle.in_transaction(self._using, send)


class TaskDispenser(ReadyTasks):
    """Hands out an endless supply of tasks in small buckets, to workers that come and go.

        d = TaskDispenser("reviews", bucket_ttl=timedelta(minutes=10))
        d.add_many({101: 5.0, 102: 1.0})
        tasks = d.assign_tasks(20, worker="alice")
        d.tasks_done("alice", tasks)

    A worker is a name, not a connection. Its whole bucket expires ``bucket_ttl`` after its last ``assign_tasks`` or
    ``touch``; then its tasks return to the pool. So a task may be started twice, by a slow worker and by the next one;
    ``tasks_done`` returns DONE to only one of them.
    """

    def __init__(self, name: str, *, bucket_ttl: Seconds = 600.0) -> None:
        """Name the dispenser, which is created on first use; raises BadOption.

        Args:
            bucket_ttl: seconds or timedelta, from 0.1 s to a day.
        """
        super().__init__(options.name("name", name))
        self.name, self._ttl = self._name, options.seconds("bucket_ttl", bucket_ttl, least=MIN_TTL)

    @staticmethod
    def now() -> datetime.datetime:
        """Return the database clock, for ``as_of`` of ``recreate_task_pool``; without USE_TZ it is in TIME_ZONE."""
        return for_project(clock(connections[bucket_lifecycle.database()]))

    def recreate_task_pool(
        self, mapping: Mapping[Any, float], *, as_of: datetime.datetime | None = None
    ) -> Rebuilt:
        """Make the pool equal to ``mapping``, {key: score}, by a diff in one transaction; returns the counts.

            started = d.now()
            d.recreate_task_pool(computed(), as_of=started)

        Workers keep their tasks, and failed tasks stay failed. The pool is never empty meanwhile.

        Args:
            as_of: when the computation of the mapping began, by the database clock. A key that finished later is
                ignored, a key that finished before is new work, and a mapping older than the last one changes nothing.
                None: all keys kept as finished (``done_kept`` of the dispenser) are ignored. In a transaction of yours
                a task counts as finished from the call of ``tasks_done`` on.

        Raises:
            BadOption: a value is not allowed; nothing was changed.
            DatabaseUnavailable: all or nothing was done; call it again.
        """
        return rebuild(self._using, self.name, validation.scores(mapping), as_of)

    def assign_tasks(self, limit: int, worker: str) -> list[Assigned]:
        """Fill the worker's bucket to ``limit`` tasks, as far as the pool has them; return them, lowest score first.

        The worker keeps its tasks and gets the first ones of the pool. If it has more than ``limit``, the last ones
        return at once. A paused dispenser assigns none. The bucket expires ``bucket_ttl`` from now.

        Args:
            limit: 0 to 10,000.
            worker: the worker's name, a line of text; processes with the same name share a bucket.

        Raises:
            BadOption: a value is not allowed.
            ClaimInTransaction: a transaction is open, whose rollback would undo the assignment.
            DatabaseUnavailable: the tasks may have been assigned; call it again.
        """
        most = options.whole("limit", limit, least=0, most=MAX_BUCKET_TASKS)
        rows = self._bucket(options.name("worker", worker)).fill(most)
        return [Assigned(row.key, row.fence, row.score) for row in rows]

    def check_tasks(self, worker: str, tasks: Iterable[Any]) -> bool:
        """Whether the worker's bucket is live and holds exactly these keys; assigned tasks must match their fences."""
        fences, name = validation.keys(tasks), options.name("worker", worker)
        rows = Bucket.objects.using(self._using).filter(
            dispenser_id=self.name, name=name, busy_before__gt=DbNow()
        )
        joined = retrying(
            connections[self._using], lambda: dict(rows.values_list("tasks__key", "tasks__fence"))
        )
        held = {key: fence for key, fence in joined.items() if key is not None}  # None: an empty bucket
        is_same = all(fence in (None, held.get(key)) for key, fence in fences.items())
        return bool(joined) and held.keys() == fences.keys() and is_same

    def tasks_done(self, worker: str, tasks: Iterable[Any]) -> dict[str, Done]:
        """Finish tasks of this worker; returns {key: result}. Uses the caller's transaction if one is open.

        A task can be finished while it has the fence of its assignment, also after the bucket has expired, until the
        bucket is reclaimed. A repeated call returns the same result; for another worker the task is stale.

        Args:
            tasks: tasks returned by ``assign_tasks``, or (key, fence) pairs.

        Raises:
            BadOption: a value is not allowed, such as keys without fences.
            DatabaseUnavailable: some tasks may be finished; call it again.
        """
        fences, name = validation.fences(tasks), options.name("worker", worker)
        results: dict[str, Done] = {}
        for chunk in chunks(fences):
            results.update(retrying(connections[self._using], partial(self._finish, name, chunk)))
        return results

    def _finish(self, worker: str, fences: dict[str, int]) -> dict[str, Done]:
        if statements.done(connections[self._using], self.name, worker, fences) == len(fences):
            return dict.fromkeys(fences, Done.DONE)
        # Done by this worker under the next fence: by this call, or by an earlier one.
        rows = DispenserTask.objects.using(self._using).filter(dispenser_id=self.name, key__in=list(fences))
        existing = {key: columns for key, *columns in rows.values_list("key", "state", "fence", "outcome")}
        results = {key: Done.STALE if key in existing else Done.UNKNOWN for key in fences}
        outcome = statements.done_by(worker)
        finished = [key for key, fence in fences.items() if existing.get(key) == ["done", fence + 1, outcome]]
        return {**results, **dict.fromkeys(finished, Done.DONE)}

    def give_back(self, worker: str, tasks: Iterable[Any] | None = None) -> int:
        """Return tasks of this worker to the pool at once (None: all its tasks); returns their number.

        That includes tasks in an expired bucket that is not reclaimed yet.

        Args:
            tasks: as for ``tasks_done``.
        """
        name = options.name("worker", worker)
        fences = None if tasks is None else validation.fences(tasks)
        bucket = self._bucket(name).find()
        return 0 if bucket is None else bucket_lifecycle.empty_bucket(self._using, bucket, fences)

    def touch(self, worker: str) -> bool:
        """Let the worker's bucket expire ``bucket_ttl`` from now; False: it has expired, or does not exist."""
        return self._bucket(options.name("worker", worker)).expire(self._ttl)

    def _bucket(self, worker: str) -> bucket_lifecycle.WorkerBucket:
        return bucket_lifecycle.WorkerBucket(self._using, self.name, worker, self._ttl)
