"""The threads in which a consumer runs its handlers."""

import os
import queue
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

from django.db import connections

from resourcepool.events import sentence_for
from resourcepool.taskqueue import sessions
from resourcepool.taskqueue.running_task import Attempt, Result, failure_result

AttemptT = TypeVar("AttemptT", bound=Attempt)


class HandlerThreads(Generic[AttemptT]):
    """Daemon threads: the end of the process does not wait for a handler that hangs."""

    def __init__(self, ended: Callable[[AttemptT, Result], object]) -> None:
        """Take note of what is called, from a worker, when a task has ended."""
        self._tasks: queue.SimpleQueue[AttemptT | None] = queue.SimpleQueue()
        self._ended, self._threads, self._pid = ended, list[threading.Thread](), os.getpid()

    @property
    def has_dead_thread(self) -> bool:
        """Whether a thread has ended by itself, perhaps with a task that it had just taken."""
        return not all(thread.is_alive() for thread in self._threads)

    def run(self, tasks: list[AttemptT], most: int) -> None:
        """Have these run, in ``most`` threads at most."""
        for task in tasks:
            if len(self._threads) < most:
                name = f"resourcepool-task-{len(self._threads) + 1}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
            self._tasks.put(task)

    def close(self) -> None:
        """End the threads that have nothing to do, and the others when their task has ended."""
        for _ in self._threads:
            self._tasks.put(None)
        self._threads.clear()

    def _work(self) -> None:
        try:
            while (task := self._tasks.get()) is not None:
                self._ended(task, self._result_of(task))
        finally:
            connections.close_all()

    def _result_of(self, task: AttemptT) -> Result:
        try:
            sessions.refresh()
            result = run_in_context(task)
            self._end_if_forked()
            result = close_leaked_connections(result)
            sessions.refresh()  # now, because a session that is not kept must not idle until the next task
        except BaseException as error:  # noqa: BLE001 (such as an asynchronous one that came late)
            self._end_if_forked()
            sessions.close_all()
            return failure_result(error)
        return result

    def _end_if_forked(self) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # a child that the handler forked: no second consumer


def run_in_context(task: Attempt) -> Result:
    """Run it; nothing is left of the language, the time zone and other context variables that it sets."""
    return copy_context().run(task.run)


def close_leaked_connections(result: Result) -> Result:
    """Return the result, after nothing of what the task left in its connections is left to the next one."""
    for alias in sessions.close_open_transactions():
        if result.error is None and not result.is_given_back:
            result = Result("", sentence_for("transaction_left", alias=repr(alias)))
    if result.error is not None:  # perhaps that of a connection
        sessions.close_all()
    return result
