"""A pool of tasks without a dispenser, lowest score first."""

from collections.abc import Callable
from typing import Any

from django.db import connections

from resourcepool import options
from resourcepool.taskqueue.dispenser import bucket_lifecycle, statements, validation
from resourcepool.taskqueue.dispenser.dispenser import MAX_BUCKET_TASKS, ReadyTasks
from resourcepool.taskqueue.dispenser.statements import Row
from resourcepool.taskqueue.dispenser.validation import K


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
