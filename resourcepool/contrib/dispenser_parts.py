"""The parts of a task dispenser by themselves: a pool, a bucket, and the list of all live buckets."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from django.db import connections

from resourcepool import options
from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.db.rows import for_update
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.options import Seconds
from resourcepool.taskqueue.dispenser import bucket_lifecycle, statements, validation
from resourcepool.taskqueue.dispenser.bucket_lifecycle import WorkerBucket
from resourcepool.taskqueue.dispenser.dispenser import MAX_BUCKET_TASKS, ReadyTasks
from resourcepool.taskqueue.dispenser.models import Bucket, DispenserTask
from resourcepool.taskqueue.dispenser.rebuild import chunks, put, read_known
from resourcepool.taskqueue.dispenser.validation import Assigned
from resourcepool.translation import gettext_noop as _

Rows = list[statements.Row]


class TaskPool(ReadyTasks):
    """Ready tasks: each a key, unique in the pool, and a score.

        pool = TaskPool("reviews")
        pool.add("film-101", 5.0)

    A ``TaskDispenser`` of the same name hands them out without loss; ``assign`` here may lose tasks.
    """

    def __init__(self, key: str) -> None:
        """Name the pool, which need not exist; raises BadOption."""
        super().__init__(options.name("key", key))
        self.key = self._name

    def assign(self, size: int = 20) -> list[str]:
        """Remove the first tasks from the pool; returns up to ``size`` keys.

        At most once: tasks are lost if the process crashes, unless they were taken in an open transaction, which is
        rolled back then. ``TaskDispenser.assign_tasks`` loses no task.

        Raises:
            BadOption: ``size`` is not from 0 to 10,000.
            DatabaseUnavailable: some tasks may have been taken.
        """
        connection, most = connections[self._using], options.whole("size", size, least=0, most=MAX_BUCKET_TASKS)

        def send() -> Rows:
            rows = statements.lock_first_ready(connection, self._name, most)
            if rows:
                statements.retire(connection, statements.fences_of(rows))
            return rows

        return [row.key for row in (self._commit(send) if most else ())]


class TaskBucket:
    """The tasks of one worker until the bucket expires; then they return to the pool.

        bucket = TaskBucket("alice", 600, pool="reviews")
        bucket.add(TaskPool("reviews").assign(20))

    A ``TaskDispenser`` moves tasks from the pool to the bucket in one step. Here a process that crashes between the two
    steps loses the tasks that it took.
    """

    def __init__(self, name: str, exp: Seconds = 600.0, *, pool: str) -> None:
        """Name the bucket, which is created when tasks are added; raises BadOption.

        Args:
            exp: seconds or timedelta, up to a day, until the bucket expires after each ``add`` and ``pop``.
        """
        self.name, self._pool = options.name("name", name), options.name("pool", pool)
        self._ttl = options.seconds("exp", exp, least=0.1)
        self._using = bucket_lifecycle.database()
        self._bucket = WorkerBucket(self._using, self._pool, self.name, self._ttl)

    def add(self, tasks: Iterable[Any]) -> list[Assigned]:
        """Put these keys, from the pool or new, into the bucket; return them, except keys that other workers have.

        Args:
            tasks: keys or assigned tasks. A key in the pool keeps its score; a new key gets the score 0, and follows
                earlier keys of that score.

        Raises:
            BadOption: a key is not allowed.
            ClaimInTransaction: a transaction is open, whose rollback would undo it.
        """
        requested, connection = validation.keys(tasks), connections[self._using]
        bucket_lifecycle.refuse_assignment_in_transaction(connection)
        rows: Rows = []
        for chunk in chunks(requested):
            rows += self._add(chunk)
        in_order = sorted(rows, key=lambda row: (row.score, row.pk))
        return [Assigned(row.key, row.fence, row.score) for row in in_order]

    def _add(self, requested: Mapping[str, Any]) -> Rows:
        connection = connections[self._using]

        def put_and_take(bucket: int) -> Rows | None:
            if not statements.touch(connection, bucket, self._ttl):
                return None
            existing = read_known(connection, self._pool, requested)
            known = {key for key, task in existing.items() if not task.finished_at}
            put(connection, self._pool, {key: 0.0 for key in requested if key not in known})
            mine = {"dispenser_id": self._pool, "state": "ready", "key__in": list(requested)}
            rows = DispenserTask.objects.using(self._using).filter(**mine)
            # By primary keys: MariaDB 11 may read, and lock, the whole table to get the order.
            pks = list(rows.values_list("pk", flat=True))
            columns = for_update(rows.filter(pk__in=pks)).values_list("pk", "key", "fence", "score")
            if ready := [statements.Row(*row) for row in columns]:
                statements.take(connection, bucket, ready)
            return [row for row in statements.tasks_in_bucket(connection, bucket) if row.key in requested]

        def send(seen: statements.DispenserSnapshot) -> Rows | None:
            put_into = partial(put_and_take, seen.live_bucket)
            return bucket_lifecycle.in_transaction(self._using, put_into)

        return self._bucket.write(send)[1]

    def expire(self, t: Seconds) -> bool:
        """Let it expire in ``t`` (seconds or timedelta, up to a day); False: it does not exist, or has expired."""
        return self._bucket.expire(options.seconds("t", t))

    def clear(self) -> int:
        """Return its tasks to the pool; returns their number."""
        bucket = self._live()
        return 0 if bucket is None else bucket_lifecycle.empty_bucket(self._using, bucket)

    def pop(self, *, reverse: bool = False) -> str | None:
        """Remove and return its first task (``reverse``: its last), and extend the bucket; None: empty or expired.

        At most once: a task is lost if its process crashes, unless it was taken in an open transaction.
        """
        bucket, connection = self._live(), connections[self._using]
        if bucket is None:
            return None

        def send() -> str | None:
            if not statements.touch(connection, bucket, self._ttl):
                return None
            rows = statements.tasks_in_bucket(connection, bucket)
            for row in reversed(rows) if reverse else rows:
                # Matches the fence, because tasks_done locks the task but not the bucket.
                if statements.retire(connection, {row.pk: row.fence}, "assigned"):
                    return row.key
            return None

        return bucket_lifecycle.in_transaction(self._using, send)

    def peek_all(self) -> list[str]:
        """Return its keys in order; [] if it is expired or does not exist."""
        bucket, connection = self._live(), connections[self._using]
        if bucket is None:
            return []
        rows = retrying(connection, partial(statements.tasks_in_bucket, connection, bucket))
        return [row.key for row in rows]

    def _live(self) -> int | None:
        return self._bucket.find(is_live=True)


class TaskRouter:
    """The live buckets of a pool, by worker.

        router = TaskRouter("reviews", prefix="reviews-{}")
        TaskBucket(router.add("alice"), pool="reviews").add(tasks)

    An expired bucket is no longer listed.
    """

    def __init__(self, key: str, prefix: str = "{}", exp: Seconds = 600.0) -> None:
        """Name the pool; raises BadOption.

        Args:
            prefix: the pattern of bucket names, with ``{}`` for the worker's name.
            exp: seconds or timedelta, up to a day, until a bucket expires without an ``add``.
        """
        self._key, self._prefix = options.name("key", key), prefix
        self._ttl, self._using = options.seconds("exp", exp, least=0.1), bucket_lifecycle.database()
        if self.make_task_name("one") == self.make_task_name("another"):
            raise self._bad_prefix()

    def make_task_name(self, val: str) -> str:
        """Return the name of the bucket of this worker; raises BadOption."""
        worker = options.name("val", val)
        try:
            name = self._prefix.format(worker)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise self._bad_prefix() from None
        return options.name("prefix", name)

    def add(self, name: str) -> str:
        """Create a bucket for this worker, unless it has one; return the bucket's name.

        Raises:
            BadOption: a name is not allowed.
            ClaimInTransaction: a transaction is open, whose rollback would undo it.
        """
        bucket_lifecycle.refuse_assignment_in_transaction(connections[self._using])
        bucket = self._bucket(name)
        bucket.open()
        return bucket.name

    def get(self, name: str) -> str | None:
        """Return the name of this worker's live bucket; None: it has none."""
        bucket = self._bucket(name)
        return None if bucket.find(is_live=True) is None else bucket.name

    def buckets(self) -> list[str]:
        """Return the names of all live buckets."""
        rows = self._rows().filter(busy_before__gt=DbNow()).order_by("pk").values_list("name", flat=True)
        return retrying(connections[self._using], lambda: list(rows.all()))

    def clear(self) -> int:
        """Remove all buckets and return their tasks to the pool; returns the number of buckets."""
        return int(self._rows().revoke())

    def _bad_prefix(self) -> BadOption:
        return BadOption("prefix", self._prefix, Sentence(_("a text with {} in place of the worker's name")))

    def _bucket(self, worker: str) -> WorkerBucket:
        name = self.make_task_name(options.name("name", worker))
        return WorkerBucket(self._using, self._key, name, self._ttl)

    def _rows(self) -> Any:
        return Bucket.objects.using(self._using).filter(dispenser_id=self._key)
