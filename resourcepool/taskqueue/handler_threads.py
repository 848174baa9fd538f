"""The threads in which a process runs its handlers."""

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
    """A pool of daemon threads: a handler that hangs does not delay the end of the process."""

    def __init__(self, on_end: Callable[[AttemptT, Result], object]) -> None:
        """Create no thread yet; ``on_end`` is called in the handler's thread when an attempt has ended."""
        self._tasks: queue.SimpleQueue[AttemptT | None] = queue.SimpleQueue()
        self._on_end, self._threads, self._pid = on_end, list[threading.Thread](), os.getpid()

    @property
    def has_dead_thread(self) -> bool:
        """Whether a thread has ended unexpectedly, perhaps with a task that it had just taken."""
        return not all(thread.is_alive() for thread in self._threads)

    def run(self, tasks: list[AttemptT], most: int) -> None:
        """Run these, in ``most`` threads at most."""
        for task in tasks:
            if len(self._threads) < most:
                name = f"resourcepool-task-{len(self._threads) + 1}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
            self._tasks.put(task)

    def close(self) -> None:
        """End the idle threads now, and the others after their task."""
        for _ in self._threads:
            self._tasks.put(None)
        self._threads.clear()

    def _work(self) -> None:
        try:
            while (task := self._tasks.get()) is not None:
                self._on_end(task, self._result_of(task))
        finally:
            connections.close_all()

    def _result_of(self, task: AttemptT) -> Result:
        try:
            sessions.refresh()
            result = run_in_context(task)
            end_if_forked(self._pid)
            result = close_leaked_connections(result)
            sessions.refresh()  # a session that is not kept must not idle until the next task
        except BaseException as error:  # noqa: BLE001 (such as a late asynchronous exception)
            end_if_forked(self._pid)
            sessions.close_all()
            return failure_result(error)
        return result


def end_if_forked(pid: int) -> None:
    """Exit if this is a forked child of the handler: it must not become a second worker."""
    if os.getpid() != pid:
        os._exit(0)


def run_in_context(task: Attempt) -> Result:
    """Run the task in a copy of the context: its language, time zone and context variables do not outlast it."""
    return copy_context().run(task.run)


def close_leaked_connections(result: Result) -> Result:
    """Close connections that the handler left in a transaction; return the result, a failure if there were any."""
    for alias in sessions.close_open_transactions():
        if result.error is None and not result.is_given_back:
            result = Result("", sentence_for("transaction_left", alias=repr(alias)))
    if result.error is not None:  # the connections may be the cause
        sessions.close_all()
    return result
