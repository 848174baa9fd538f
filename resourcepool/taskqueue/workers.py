"""The threads in which a consumer runs its handlers."""

import queue
import threading
from collections.abc import Callable

from django.db import close_old_connections, connections

from resourcepool.taskqueue.running import Result, RunningTask

IDLE = 5.0  # seconds after which a thread's connections are looked after before its next task


class Workers:
    """Daemon threads: the end of the process does not wait for a handler that hangs."""

    def __init__(self, ended: Callable[[RunningTask, Result], object]) -> None:
        """Take note of what is called, from a worker, when a task has ended."""
        self._tasks: queue.SimpleQueue[RunningTask | None] = queue.SimpleQueue()
        self._ended, self._threads = ended, 0

    def run(self, tasks: list[RunningTask], most: int) -> None:
        """Have these run, in ``most`` threads at most."""
        for task in tasks:
            if self._threads < most:
                self._threads += 1
                name = f"resourcepool-task-{self._threads}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
            self._tasks.put(task)

    def close(self) -> None:
        """End the threads that have nothing to do, and the others when their task has ended."""
        for _ in range(self._threads):
            self._tasks.put(None)
        self._threads = 0

    def _work(self) -> None:
        try:
            while (task := self._next()) is not None:
                result = task.run()
                if result.error is not None:
                    close_old_connections()
                self._ended(task, result)
        finally:
            connections.close_all()

    def _next(self) -> RunningTask | None:
        try:
            return self._tasks.get(timeout=IDLE)
        except queue.Empty:
            close_old_connections()
            return self._tasks.get()
