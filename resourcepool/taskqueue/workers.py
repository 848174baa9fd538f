"""The threads in which a consumer runs its handlers."""

import contextlib
import os
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.events import say
from resourcepool.taskqueue.running import Attempt, Result

IDLE = 5.0  # seconds after which a thread's connections are looked after before its next task


Work = TypeVar("Work", bound=Attempt)


class Workers(Generic[Work]):
    """Daemon threads: the end of the process does not wait for a handler that hangs."""

    def __init__(self, ended: Callable[[Work, Result], object]) -> None:
        """Take note of what is called, from a worker, when a task has ended."""
        self._tasks: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._ended, self._threads, self._pid = ended, 0, os.getpid()

    def run(self, tasks: list[Work], most: int) -> None:
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
                if os.getpid() != self._pid:
                    os._exit(0)  # a child that the handler forked: no second consumer
                self._ended(task, tidied(result))
        finally:
            connections.close_all()

    def _next(self) -> Work | None:
        try:
            return self._tasks.get(timeout=IDLE)
        except queue.Empty:
            with contextlib.suppress(DatabaseError, InterfaceError):  # the driver may have closed one already
                close_old_connections()
            return self._tasks.get()


def tidied(result: Result) -> Result:
    """Return the result, after nothing of what the task left in its connections is left to the next one."""
    for connection in connections.all(initialized_only=True):
        if _is_open(connection):
            dialect.close_quietly(connection)
            del connections[connection.alias]  # and what Django thinks is open in it
            if result.error is None and not result.is_given_back:
                result = Result("", say("transaction_left", alias=repr(connection.alias)))
    if result.error is not None:  # perhaps that of a connection
        for connection in connections.all(initialized_only=True):
            dialect.close_quietly(connection)
    return result


def _is_open(connection: BaseDatabaseWrapper) -> bool:
    is_usual = connection.autocommit == connection.settings_dict["AUTOCOMMIT"]
    return connection.in_atomic_block or (connection.connection is not None and not is_usual)
