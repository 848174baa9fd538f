"""A bucket by itself: tasks that one worker has for a while; and which worker has which (document 003, R3.3-R3.4)."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connections
from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue import validators
from resourcepool.taskqueue.dispenser import bucket_lifecycle, statements, validation
from resourcepool.taskqueue.dispenser.models import Bucket, DispenserTask
from resourcepool.taskqueue.dispenser.rebuild import chunks, put, read_known

Rows = list[statements.Row]


class TaskBucket:
    """Tasks that one worker has until the bucket expires; then they are in the pool again.

        bucket = TaskBucket("alice", 600, pool="reviews")
        bucket.add(TaskPool("reviews").assign_scored(20))

    A ``TaskDispenser`` moves tasks from the pool to the bucket in one step. Here a process that dies between the two
    has lost what it took.
    """

    def __init__(
        self,
        name: str,
        exp: float | timedelta = 600.0,
        *,
        pool: str,
        factory: Callable[[str], Any] = str,
        holder: str = "",
    ) -> None:
        """Name the bucket, which is made when tasks are added; raises BadOption.

        Args:
            exp: how long it lasts after each ``add`` and ``pop``: seconds or a timedelta, up to a day.
            factory: makes of the text of a key what callers get, such as int.
            holder: its worker, for people to read; the name, if not validation.
        """
        self.name, self._pool = validators.name("name", name), validators.name("pool", pool)
        self._ttl = options.seconds("exp", exp, least=0.1)
        self._factory, self._holder = validation.factory(factory), validators.name("holder", holder or name)
        self._using: str = bucket_lifecycle.database()

    def add(self, tasks: Iterable[Any]) -> list[validation.Assigned]:
        """Put these keys into the bucket, whether in the pool or new; return them, except what other workers have.

        Keys that ``factory`` refuses are failed, as by ``TaskDispenser.assign_tasks``.

        Args:
            tasks: keys, assigned tasks, or {key: score}. A key that is in the pool keeps its score there; a new one
                has the score that is given, or else 0, and comes after those of its score that came before it.

        Raises:
            BadOption: a key is not allowed.
            ClaimInTransaction: a transaction is open, whose rollback would undo it.
        """
        wanted, connection = validation.keys_and_scores(tasks), connections[self._using]
        bucket_lifecycle.refuse_open_transaction(connection)
        got: Rows = []
        for chunk in chunks(wanted):
            got += self._add(chunk)
        in_order = sorted(got, key=lambda row: (row.score, row.pk))
        told, refused = validation.assigned_tasks(in_order, self._factory)
        bucket_lifecycle.fail_unreadable(self._using, refused)
        return told

    def _add(self, wanted: dict[str, float]) -> Rows:
        connection = connections[self._using]

        def put_and_take(bucket: int) -> Rows | None:
            if not statements.touch(connection, bucket, self._ttl):
                return None
            there = read_known(connection, self._pool, wanted)
            gone = {key: wanted[key] for key in wanted if key not in there or there[key].finished_at}
            if gone:
                put(connection, self._pool, gone, there=there)
            rows = DispenserTask.objects.using(self._using).filter(
                dispenser_id=self._pool, state="ready", key__in=list(wanted)
            )
            # By their keys: for an order MariaDB 11 may read the whole table in that order, and lock what it reads.
            pks = list(rows.values_list("pk", flat=True))
            locked = rows.filter(pk__in=pks).select_for_update().order_by("pk")
            found = locked.values_list("pk", "key", "fence", "score")
            if ready := [statements.Row(*row) for row in found]:
                statements.take(connection, bucket, ready)
            return [row for row in statements.tasks_in_bucket(connection, bucket) if row.key in wanted]

        def send(_: statements.DispenserSnapshot, bucket: int) -> Rows | None:
            return bucket_lifecycle.in_transaction(self._using, partial(put_and_take, bucket))

        return bucket_lifecycle.write_to_bucket(
            self._using, self._pool, self.name, self._holder, self._ttl, send
        )[1]

    def expire(self, t: float | timedelta) -> bool:
        """Have it expire in ``t`` (seconds or a timedelta, up to a day); False: it has expired, or there is none."""
        seconds, bucket = options.seconds("t", t), self._live()
        if bucket is None:
            return False
        touch = partial(statements.touch, connections[self._using], bucket, seconds)
        return retrying(connections[self._using], touch)

    def clear(self) -> int:
        """Return its tasks to the pool; returns how many it had. (The document's loses them.)"""
        bucket = self._live()
        return 0 if bucket is None else bucket_lifecycle.empty_bucket(self._using, bucket)

    def pop(self, *, reverse: bool = False) -> Any:
        """Take its first task (``reverse``: its last one) out for good, and extend it; None: it is empty, or expired.

        At most once: what a process that dies had taken is lost, unless it took it in a transaction of its own. Tasks
        whose keys ``factory`` refuses are failed; after any other error of it none is taken.
        """
        bucket, connection = self._live(), connections[self._using]
        if bucket is None:
            return None

        def send() -> Any:
            if not statements.touch(connection, bucket, self._ttl):
                return None
            rows = statements.tasks_in_bucket(connection, bucket)
            for row in reversed(rows) if reverse else rows:
                made, refused = validation.apply_factory([row], self._factory)
                bucket_lifecycle.fail_unreadable(self._using, refused)
                # By its fence: tasks_done locks only the task.
                if made and statements.retire(connection, {row.pk: row.fence}, "assigned"):
                    return made[0][1]
            return None

        return bucket_lifecycle.in_transaction(self._using, send)

    def peek_all(self) -> list[Any]:
        """Return its keys in order, except what ``factory`` refuses; [] if it has expired or does not exist."""
        bucket, connection = self._live(), connections[self._using]
        if bucket is None:
            return []
        rows = retrying(connection, partial(statements.tasks_in_bucket, connection, bucket))
        return [one for _, one in validation.apply_factory(rows, self._factory)[0]]

    def _live(self) -> int | None:
        return bucket_lifecycle.find_bucket(self._using, self._pool, self.name, is_live=True)


class TaskRouter:
    """The live buckets of a pool, by worker.

        router = TaskRouter("reviews", prefix="reviews-{}")
        TaskBucket(router.add("alice"), pool="reviews").add(tasks)

    A bucket that expires leaves the router by itself.
    """

    def __init__(self, key: str, prefix: str = "{}", exp: float | timedelta = 600.0) -> None:
        """Name the pool; raises BadOption.

        Args:
            prefix: makes a bucket's name of a worker's, where it has ``{}``.
            exp: how long a bucket lasts without an ``add``: seconds or a timedelta, up to a day.
        """
        self._key, self._prefix = validators.name("key", key), prefix
        self._ttl, self._using = options.seconds("exp", exp, least=0.1), bucket_lifecycle.database()
        if self.make_task_name("one") == self.make_task_name("another"):
            raise self._bad_prefix()

    def make_task_name(self, val: str) -> str:
        """Return the name of the bucket of this worker; raises BadOption."""
        worker = validators.name("val", val)
        try:
            name = self._prefix.format(worker)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise self._bad_prefix() from None
        return validators.name("prefix", name)

    def add(self, name: str, task_name: str | None = None) -> str:
        """Make a bucket for this worker, unless it has one; returns the bucket's name.

        Raises:
            BadOption: a name is not allowed.
            ClaimInTransaction: a transaction is open, whose rollback would undo it.
        """
        worker = validators.name("name", name)
        bucket = self.make_task_name(worker) if task_name is None else validators.name("task_name", task_name)
        bucket_lifecycle.refuse_open_transaction(connections[self._using])
        known = self.get(worker)
        if known is not None:
            return known
        seen = bucket_lifecycle.open_bucket(self._using, self._key, bucket, worker, self._ttl)
        rows = Bucket.objects.using(self._using).filter(pk=seen.bucket).values_list("holder", flat=True)
        if retrying(connections[self._using], rows.first) not in (None, worker):
            allowed = _("a name that the bucket of no other worker has")
            raise BadOption("prefix" if task_name is None else "task_name", bucket, Sentence(allowed))
        return bucket

    def get(self, name: str) -> str | None:
        """Return the name of this worker's bucket; None: it has no live one."""
        worker = validators.name("name", name)
        rows = self._live().filter(holder=worker).order_by("pk").values_list("name", "holder")
        found = retrying(connections[self._using], lambda: list(rows.all()))
        # In the eyes of MySQL "Ann" and "ann" are one.
        return next((bucket for bucket, holder in found if holder == worker), None)

    def buckets(self) -> list[str]:
        """Return the names of all live bucket_lifecycle."""
        rows = self._live().order_by("pk").values_list("name", flat=True)
        return retrying(connections[self._using], lambda: list(rows.all()))

    def clear(self) -> int:
        """Remove all buckets, and return their tasks to the pool; returns how many tasks they had."""
        rows = Bucket.objects.using(self._using).filter(dispenser_id=self._key).values_list("pk", flat=True)
        connection, returned = connections[self._using], 0
        for pk in retrying(connection, lambda: list(rows)):
            returned += bucket_lifecycle.empty_bucket(self._using, pk, is_removed=True)
        return returned

    def _bad_prefix(self) -> BadOption:
        return BadOption(
            "prefix", self._prefix, Sentence(_("a text with {} in the place of the worker's name"))
        )

    def _live(self) -> Any:
        rows = Bucket.objects.using(self._using)
        return rows.filter(dispenser_id=self._key, busy_before__gt=DbNow())
