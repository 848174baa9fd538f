"""A pool of tasks, lowest score first (document 003, R3.2)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.db import connections

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.taskqueue import validators
from resourcepool.taskqueue.bulk_insert import BATCH
from resourcepool.taskqueue.dispenser import bucket_lifecycle, statements, validation
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.dispenser.rebuild import chunks, put

MAX_BUCKET_TASKS = 10_000  # tasks in a bucket


class TaskPool:
    """Tasks that wait for a worker: each a key, unique in the pool, and a score.

        pool = TaskPool("reviews")
        pool.add("film-101", 5.0)

    A ``TaskDispenser`` of the same name hands them out without losing any; ``assign`` here does not promise that.
    """

    def __init__(self, key: str, *, factory: Callable[[str], Any] = str) -> None:
        """Name the pool, which need not exist; raises BadOption.

        Args:
            factory: makes of the text of a key what callers get, such as int.
        """
        self.key = validators.name("key", key)
        self.using = bucket_lifecycle.database()
        self.factory = validation.factory(factory)

    def add(self, task: str | int, priority: float) -> bool:
        """Add a task; returns whether it is new. See ``add_many``."""
        return bool(self._add({validation.key(task, "task"): validation.score(priority)}))

    def add_many(self, mapping: Mapping[Any, float]) -> int:
        """Add these, {key: score}, 1,000 in a transaction, or all in the caller's; returns how many are new.

        A key that is waiting gets the new score; one that a worker has, or that has failed, is left as it is; one that
        is finished is new work.

        Raises:
            BadOption: a key or a score is not allowed; nothing was added.
            DatabaseUnavailable: some may have been added; it can be repeated.
        """
        return self._add(validation.scores(mapping))

    def _add(self, scores: Mapping[str, float]) -> int:
        bucket_lifecycle.make_dispenser(self.using, self.key)
        put_chunk = partial(put, connections[self.using], self.key)
        return sum(
            bucket_lifecycle.in_transaction(self.using, partial(put_chunk, chunk)).added
            for chunk in chunks(scores)
        )

    def clear(self) -> int:
        """Remove all tasks that wait; returns how many. What workers have, they keep."""
        connection, removed = connections[self.using], 0
        after: tuple[float, int] | None = None
        while True:
            look = partial(statements.first_ready, connection, self.key, BATCH, after)
            if not (found := retrying(connection, look)):
                return removed
            fences = {row.pk: row.fence for row in found}
            removed += bucket_lifecycle.in_transaction(
                self.using, partial(statements.retire, connection, fences)
            )
            # A transaction may see for ever what others have taken since it began.
            after = (found[-1].score, found[-1].pk + 1)

    def assign(self, size: int = 20) -> list[Any]:
        """Take the first tasks out of the pool for good; returns up to ``size`` keys.

        At most once: what a process that dies had taken is lost, unless it took it in a transaction of its own, which
        then puts it back. ``TaskDispenser.assign_tasks`` loses nothing. A task whose key ``factory`` refuses with a
        ValueError, a TypeError, a LookupError or an ArithmeticError is failed; after any other error of it none is
        taken.

        Raises:
            BadOption: ``size`` is not from 0 to 10,000.
            DatabaseUnavailable: some may have been taken.
        """
        connection, most = connections[self.using], options.whole("size", size, least=0, most=MAX_BUCKET_TASKS)

        def send() -> list[Any]:
            got: list[Any] = []
            while rows := statements.lock_first_ready(connection, self.key, most - len(got)):
                made, refused = validation.apply_factory(rows, self.factory)
                if made:
                    statements.remove(connection, [row for row, _ in made])
                    got += [one for _, one in made]
                bucket_lifecycle.fail_unreadable(self.using, refused)
                if not refused:
                    break
            return got

        return bucket_lifecycle.in_transaction(self.using, send) if most else []

    def assign_scored(self, size: int = 20) -> dict[str, float]:
        """Take the first tasks out, as ``assign``; returns {key: score} for ``TaskBucket.add`` or ``add_many``.

        The keys are text: ``factory`` is not asked.
        """
        connection, most = connections[self.using], options.whole("size", size, least=0, most=MAX_BUCKET_TASKS)

        def send() -> dict[str, float]:
            if rows := statements.lock_first_ready(connection, self.key, most):
                statements.remove(connection, rows)
            return {row.key: row.score for row in rows}

        return bucket_lifecycle.in_transaction(self.using, send) if most else {}

    def size(self) -> int:
        """Return how many tasks wait."""
        rows = DispenserTask.objects.using(self.using).filter(dispenser_id=self.key, state="ready")
        return int(retrying(connections[self.using], rows.count))
