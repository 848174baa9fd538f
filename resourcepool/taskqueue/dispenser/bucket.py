"""A bucket by itself: tasks that one worker has for a while (document 003, R3.3)."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connections, transaction

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.leases.short_transactions import locked_row
from resourcepool.taskqueue import checking
from resourcepool.taskqueue.dispenser import buckets, given, statements
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.dispenser.putting import chunks, known, put

Rows = list[statements.Row]


class TaskBucket:
    """Tasks that one worker has until the bucket expires; then they are in the pool again.

        bucket = TaskBucket("alice", 600, pool="reviews")
        bucket.add(TaskPool("reviews").assign(20))

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
            holder: its worker, for people to read; the name, if not given.
        """
        self.name, self._pool = checking.name("name", name), checking.name("pool", pool)
        self._ttl = options.seconds("exp", exp, least=0.1)
        self._factory, self._holder = factory, checking.name("holder", holder or name)
        self._using: str = buckets.database()

    def add(self, tasks: Iterable[Any]) -> list[given.Assigned]:
        """Put these keys into the bucket, in the pool or not; returns those it got: not what other workers have.

        Raises:
            BadOption: a key is not allowed.
            ClaimInTransaction: a transaction is open, whose rollback would undo it.
        """
        wanted, connection = dict.fromkeys(given.keys(tasks), 0.0), connections[self._using]
        buckets.refuse_open_transaction(connection)
        got: Rows = []
        for chunk in chunks(wanted):
            got += self._add(chunk)
        return [given.Assigned(self._factory(row.key), row.fence, row.score) for row in got]

    def _add(self, wanted: dict[str, float]) -> Rows:
        connection = connections[self._using]

        def once() -> Rows | None:
            with transaction.atomic(using=self._using):
                if not statements.touch(connection, bucket, self._ttl):
                    return None
                there = known(connection, self._pool, wanted)
                gone = {key: 0.0 for key in wanted if key not in there or there[key].finished_at}
                put(connection, self._pool, gone, there, is_new_work=lambda _: True)
                rows = DispenserTask.objects.using(self._using).filter(
                    dispenser_id=self._pool, state="ready", key__in=list(wanted)
                )
                found = rows.select_for_update().order_by("pk").values_list("pk", "key", "fence", "score")
                mine = [statements.Row(*row) for row in found]
                return statements.take(connection, bucket, mine) if mine else []

        for _ in range(buckets.TRIES):
            seen = buckets.opened(self._using, self._pool, self.name, self._holder, self._ttl)
            assert seen.bucket is not None  # noqa: S101 (for the type checker)
            bucket = seen.bucket
            rows = retrying(connection, once)
            if rows is not None:
                return rows
        raise locked_row(self._using)

    def expire(self, t: float | timedelta) -> bool:
        """Have it expire in ``t`` (seconds or a timedelta, up to a day); False: it has expired, or there is none."""
        seconds, bucket = options.seconds("t", t), self._live()
        connection = connections[self._using]
        return bucket is not None and retrying(
            connection, partial(statements.touch, connection, bucket, seconds)
        )

    def clear(self) -> int:
        """Return its tasks to the pool; returns how many it had. (The document's loses them.)"""
        bucket = self._live()
        return 0 if bucket is None else buckets.emptied(self._using, bucket)

    def pop(self, *, reverse: bool = False) -> Any:
        """Take its first task (``reverse``: its last one) out for good, and extend it; None: it is empty, or expired.

        At most once: what a process that dies had taken is lost, unless it took it in a transaction of its own.
        """
        bucket, connection = self._live(), connections[self._using]
        if bucket is None:
            return None

        def once() -> Rows:
            with transaction.atomic(using=self._using):
                if not statements.touch(connection, bucket, self._ttl):
                    return []
                rows = statements.held(connection, bucket)
                one = rows[-1:] if reverse else rows[:1]
                # By its fence: tasks_done locks only the task.
                fences = {row.pk: row.fence for row in one}
                return one if one and statements.retire(connection, fences, "assigned") else []

        rows = retrying(connection, once)
        return self._factory(rows[0].key) if rows else None

    def peek_all(self) -> list[Any]:
        """Return its keys in order; none when it has expired, or there is none."""
        bucket, connection = self._live(), connections[self._using]
        if bucket is None:
            return []
        return [
            self._factory(row.key) for row in retrying(connection, partial(statements.held, connection, bucket))
        ]

    def _live(self) -> int | None:
        return buckets.live(self._using, self._pool, self.name)
