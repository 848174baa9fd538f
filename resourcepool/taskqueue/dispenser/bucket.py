"""A bucket by itself: tasks that one worker has for a while (document 003, R3.3)."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connections

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.taskqueue import checking
from resourcepool.taskqueue.dispenser import buckets, given, handing, statements
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
        self._factory, self._holder = given.factory(factory), checking.name("holder", holder or name)
        self._using: str = buckets.database()

    def add(self, tasks: Iterable[Any]) -> list[given.Assigned]:
        """Put these keys into the bucket, in the pool or not; returns those it got: not what other workers have.

        Those that ``factory`` refuses are failed, as by ``TaskDispenser.assign_tasks``.

        Raises:
            BadOption: a key is not allowed.
            ClaimInTransaction: a transaction is open, whose rollback would undo it.
        """
        wanted, connection = dict.fromkeys(given.keys(tasks), 0.0), connections[self._using]
        buckets.refuse_open_transaction(connection)
        got: Rows = []
        for chunk in chunks(wanted):
            got += self._add(chunk)
        told, refused = given.assigned(got, self._factory)
        buckets.fail_unreadable(self._using, refused)
        return told

    def _add(self, wanted: dict[str, float]) -> Rows:
        connection = connections[self._using]

        def send(_: statements.Seen, bucket: int) -> Rows | None:
            with buckets.limited(self._using):
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

        return handing.in_bucket(self._using, self._pool, self.name, self._holder, self._ttl, send)[1]

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

        At most once: what a process that dies had taken is lost, unless it took it in a transaction of its own. Tasks
        whose keys ``factory`` refuses are failed; after any other error of it none is taken.
        """
        bucket, connection = self._live(), connections[self._using]
        if bucket is None:
            return None

        def once() -> Any:
            with buckets.limited(self._using):
                if not statements.touch(connection, bucket, self._ttl):
                    return None
                rows = statements.held(connection, bucket)
                for row in reversed(rows) if reverse else rows:
                    made, refused = given.read([row], self._factory)
                    buckets.fail_unreadable(self._using, refused)
                    # By its fence: tasks_done locks only the task.
                    if made and statements.retire(connection, {row.pk: row.fence}, "assigned"):
                        return made[0][1]
                return None

        return retrying(connection, once)

    def peek_all(self) -> list[Any]:
        """Return its keys in order, but those that ``factory`` refuses; none when it has expired, or there is none."""
        bucket, connection = self._live(), connections[self._using]
        if bucket is None:
            return []
        rows = retrying(connection, partial(statements.held, connection, bucket))
        return [one for _, one in given.read(rows, self._factory)[0]]

    def _live(self) -> int | None:
        return buckets.live(self._using, self._pool, self.name)
