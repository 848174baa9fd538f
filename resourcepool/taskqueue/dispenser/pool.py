"""A pool of tasks, lowest score first."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic

from django.db import connections

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.taskqueue.abstract import CHUNK
from resourcepool.taskqueue.dispenser import bucket_lifecycle, statements, validation
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.dispenser.rebuild import chunks, put
from resourcepool.taskqueue.dispenser.statements import Row
from resourcepool.taskqueue.dispenser.validation import K

MAX_BUCKET_TASKS = 10_000


class ReadyTasks(Generic[K]):
    """The ready tasks of a dispenser, each with a key, unique there, and a score."""

    def __init__(self, name: str, factory: Callable[[str], K]) -> None:
        self._name, self._using = name, bucket_lifecycle.database()
        self._factory = validation.factory(factory)

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
        connection, removed = connections[self._using], 0
        after: tuple[float, int] | None = None
        while True:
            read = partial(statements.first_ready, connection, self._name, CHUNK, after)
            if not (rows := retrying(connection, read)):
                return removed
            removed += self._commit(partial(statements.retire, connection, statements.fences_of(rows)))
            # The snapshot of a transaction may still show tasks that were taken meanwhile.
            after = (rows[-1].score, rows[-1].pk + 1)

    def size(self) -> int:
        """Return the number of ready tasks."""
        rows = DispenserTask.objects.using(self._using).filter(dispenser_id=self._name, state="ready")
        return int(retrying(connections[self._using], rows.count))

    def _commit(self, send: Callable[[], Any]) -> Any:
        return bucket_lifecycle.in_transaction(self._using, send)


class TaskPool(ReadyTasks[K]):
    """Ready tasks: each a key, unique in the pool, and a score.

        pool = TaskPool("reviews")
        pool.add("film-101", 5.0)

    A ``TaskDispenser`` of the same name hands them out without loss; ``assign`` here may lose tasks.
    """

    def __init__(
        self,
        key: str,
        *,
        factory: Callable[[str], K] = str,  # type: ignore[assignment]  # without it K is str
    ) -> None:
        """Name the pool, which need not exist; raises BadOption.

        Args:
            factory: converts the text of a key for callers, such as int.
        """
        super().__init__(options.name("key", key), factory)
        self.key = self._name

    def assign(self, size: int = 20) -> list[K]:
        """Remove the first tasks from the pool; returns up to ``size`` keys.

        At most once: tasks are lost if the process crashes, unless they were taken in an open transaction, which is
        rolled back then. ``TaskDispenser.assign_tasks`` loses no task. A task fails if ``factory`` refuses its key with
        a ValueError, TypeError, LookupError or ArithmeticError; any other error of ``factory`` takes no task.

        Raises:
            BadOption: ``size`` is not from 0 to 10,000.
            DatabaseUnavailable: some tasks may have been taken.
        """
        return [key for _, key in self._take(size, self._factory)]

    def assign_scored(self, size: int = 20) -> dict[str, float]:
        """Remove the first tasks, as ``assign``; returns {key: score} for ``TaskBucket.add`` or ``add_many``.

        The keys are text, not converted by ``factory``.
        """
        return {row.key: row.score for row, _ in self._take(size, str)}

    def _take(self, size: int, factory: validation.Factory) -> list[tuple[Row, Any]]:
        connection, most = connections[self._using], options.whole("size", size, least=0, most=MAX_BUCKET_TASKS)

        def send() -> list[tuple[Row, Any]]:
            taken: list[tuple[Row, Any]] = []
            while rows := statements.lock_first_ready(connection, self._name, most - len(taken)):
                made, refused = validation.apply_factory(rows, factory)
                if made:
                    statements.retire(connection, statements.fences_of(row for row, _ in made))
                    taken += made
                bucket_lifecycle.fail_unreadable(self._using, refused)
                if not refused:
                    break
            return taken

        taken: list[tuple[Row, Any]] = self._commit(send) if most else []
        return taken
