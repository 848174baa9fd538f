"""Hands tasks out in buckets: no task to two workers, none lost with one (document 003, R3.5)."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from django.db import connections

from resourcepool import options
from resourcepool.database.open_transaction import set_idle_timeout
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow, for_project
from resourcepool.taskqueue import validators
from resourcepool.taskqueue.dispenser import bucket_lifecycle, statements, validation
from resourcepool.taskqueue.dispenser.bucket import TaskBucket
from resourcepool.taskqueue.dispenser.models import Bucket, DispenserTask
from resourcepool.taskqueue.dispenser.pool import MAX_BUCKET_TASKS, TaskPool
from resourcepool.taskqueue.dispenser.rebuild import Rebuilt, chunks, clock, rebuild
from resourcepool.taskqueue.dispenser.validation import Assigned

SHORTEST = 0.1  # seconds that a bucket lasts


class Done(StrEnum):
    """What ``tasks_done`` says about a task."""

    DONE = "done"
    STALE = "stale"  # assigned again since, back in the pool, or finished otherwise
    UNKNOWN = "unknown"  # there is no such task (any more)


class TaskDispenser:
    """Tasks without end, handed in small buckets to workers that come and go.

        d = TaskDispenser("reviews", bucket_ttl=timedelta(minutes=10))
        d.add_many({101: 5.0, 102: 1.0})
        tasks = d.assign_tasks(20, worker="alice")
        d.tasks_done("alice", tasks)

    A worker is a name, not a connection. Its bucket expires as a whole ``bucket_ttl`` after its last ``assign_tasks``
    or ``touch``; then its tasks are in the pool again. So a task may be begun twice, by a worker that was too slow and
    by the next one; only one of them is told that it is done.
    """

    def __init__(
        self, name: str, *, bucket_ttl: float | timedelta = 600.0, factory: Callable[[str], Any] = str
    ) -> None:
        """Name the dispenser, which is made when it is first used; raises BadOption.

        Args:
            bucket_ttl: seconds or a timedelta, from 0.1 s to a day.
            factory: makes of the text of a key what callers get, which is a key itself, such as int.
        """
        self.name = validators.name("name", name)
        self.pool = TaskPool(name, factory=factory)
        self._ttl = options.seconds("bucket_ttl", bucket_ttl, least=SHORTEST)
        self._using = self.pool.using

    @staticmethod
    def now() -> datetime.datetime:
        """Return the database's clock, for ``as_of`` of ``recreate_task_pool``; without USE_TZ as one of TIME_ZONE."""
        return for_project(clock(connections[bucket_lifecycle.database()]))

    def add(self, task: str | int, priority: float) -> bool:
        """Add a task; see ``TaskPool.add_many``."""
        return self.pool.add(task, priority)

    def add_many(self, mapping: Mapping[Any, float]) -> int:
        """Add tasks; see ``TaskPool.add_many``."""
        return self.pool.add_many(mapping)

    def clear(self) -> int:
        """Remove all tasks that wait; returns how many. What workers have, they keep."""
        return self.pool.clear()

    def size(self) -> int:
        """Return how many tasks wait."""
        return self.pool.size()

    def recreate_task_pool(
        self, mapping: Mapping[Any, float], *, as_of: datetime.datetime | None = None
    ) -> Rebuilt:
        """Make the pool what ``mapping`` says, {key: score}: a diff in one transaction; returns what it did.

            started = d.now()
            d.recreate_task_pool(computed(), as_of=started)

        What workers have is left with them, what has failed stays failed. The pool is never empty meanwhile.

        Args:
            as_of: when computing the mapping began, by the database's clock. A key that finished since is ignored, one
                that finished before is new work, and a mapping older than the last one changes nothing. Without it
                every key is ignored that is remembered as finished (``done_kept`` of the dispenser). A transaction of
                yours that calls ``tasks_done`` and commits after ``as_of`` counts from that call.

        Raises:
            BadOption: a value is not allowed; nothing was changed.
            DatabaseUnavailable: it was done, or nothing was; call it again.
        """
        return rebuild(self._using, self.name, validation.scores(mapping), as_of)

    def assign_tasks(self, limit: int, worker: str) -> list[Assigned]:
        """Have this worker hold exactly ``limit`` tasks, if there are; return them, lowest score first.

        It keeps the tasks that it has and gets the first of the pool; if it has more, the last ones go back at once.
        While the dispenser is paused it gets none. Its bucket expires ``bucket_ttl`` from now. A task whose key
        ``factory`` refuses with a ValueError, a TypeError, a LookupError or an ArithmeticError, or turns into another
        key (7 of "007"), is failed, and no worker is held up by it.

        Args:
            limit: 0 to 10,000.
            worker: its name, a line of text; processes that use the same name share a bucket.

        Raises:
            BadOption: a value is not allowed.
            ClaimInTransaction: a transaction is open, whose rollback would undo it.
            DatabaseUnavailable: it may have been done; call it again.
        """
        most = options.whole("limit", limit, least=0, most=MAX_BUCKET_TASKS)
        name = validators.name("worker", worker)
        while True:
            rows = bucket_lifecycle.fill(self._using, self.name, name, name, most, self._ttl)
            told, refused = validation.assigned_tasks(rows, self.pool.factory)
            if not refused:
                return told
            bucket_lifecycle.fail_unreadable(self._using, refused)

    def check_tasks(self, worker: str, tasks: Iterable[Any]) -> bool:
        """Whether the worker's bucket is live and holds exactly these keys; of assigned tasks, under their fences."""
        fences, name = validation.keys(tasks, self.pool.factory), validators.name("worker", worker)
        rows = Bucket.objects.using(self._using).filter(
            dispenser_id=self.name, name=name, busy_before__gt=DbNow()
        )
        found = retrying(connections[self._using], lambda: dict(rows.values_list("tasks__key", "tasks__fence")))
        has = {key: fence for key, fence in found.items() if key is not None}
        is_same = all(fence in (None, has.get(key)) for key, fence in fences.items())
        return bool(found) and has.keys() == fences.keys() and is_same

    def tasks_done(self, worker: str, tasks: Iterable[Any]) -> dict[Any, Done]:
        """Finish tasks of this worker; returns {key: what became of it}. In the caller's transaction, if one is open.

        The keys are as ``factory`` makes them, handed in as these or as text; one that it refuses is text.

        A task counts if it still has the fence under which it was assigned, also when the bucket has expired and nobody
        has taken it back. Repeating the call says the same; to another worker the task is stale.

        Args:
            tasks: what ``assign_tasks`` returned, or (key, fence) pairs.

        Raises:
            BadOption: a value is not allowed, such as keys without fences.
            DatabaseUnavailable: some may be done; call it again.
        """
        fences, name = validation.fences(tasks, self.pool.factory), validators.name("worker", worker)
        named = {key: self._named(key) for key in fences}  # an error of the factory comes before any end
        set_idle_timeout(connections[self._using], self._ttl)
        told: dict[Any, Done] = {}
        for part in chunks(fences):
            told.update(retrying(connections[self._using], partial(self._finish, name, part)))
        return {named[key]: one for key, one in told.items()}

    def _named(self, key: str) -> Any:
        try:
            return validation.same_key(self.pool.factory, key)
        except validation.REFUSALS:
            return key

    def _finish(self, worker: str, fences: dict[str, int]) -> dict[str, Done]:
        if statements.done(connections[self._using], self.name, worker, fences) == len(fences):
            return dict.fromkeys(fences, Done.DONE)
        # Done under the next fence, by this worker: by this call, or by an earlier one like it.
        rows = DispenserTask.objects.using(self._using).filter(dispenser_id=self.name, key__in=list(fences))
        there = {key: about for key, *about in rows.values_list("key", "state", "fence", "outcome")}
        told = {key: Done.STALE if key in there else Done.UNKNOWN for key in fences}
        said = statements.done_by(worker)
        finished = [key for key, fence in fences.items() if there.get(key) == ["done", fence + 1, said]]
        return {**told, **dict.fromkeys(finished, Done.DONE)}

    def give_back(self, worker: str, tasks: Iterable[Any] | None = None) -> int:
        """Return tasks of this worker to the pool at once (None: all that it has); returns how many it had.

        Also those of a bucket that has expired, as long as nobody has taken it back.

        Args:
            tasks: as for ``tasks_done``.
        """
        name, connection = validators.name("worker", worker), connections[self._using]
        if tasks is None:
            bucket = bucket_lifecycle.find_bucket(self._using, self.name, name)
            return 0 if bucket is None else bucket_lifecycle.empty_bucket(self._using, bucket)
        give = partial(statements.give_back_by_key, connection, self.name, name)
        parts = chunks(validation.fences(tasks, self.pool.factory))
        return sum(bucket_lifecycle.in_transaction(self._using, partial(give, part)) for part in parts)

    def touch(self, worker: str) -> bool:
        """Have the worker's bucket expire ``bucket_ttl`` from now; False: it has expired, or there is none."""
        return self._bucket(worker).expire(self._ttl)

    def _bucket(self, worker: str) -> TaskBucket:
        return TaskBucket(validators.name("worker", worker), self._ttl, pool=self.name)
