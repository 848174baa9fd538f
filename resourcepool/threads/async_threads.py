"""Runs blocking code for asyncio. If the task is cancelled, the code still completes, or its result is undone."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

Result = TypeVar("Result")
Params = ParamSpec("Params")
Self = TypeVar("Self")

logger = logging.getLogger(__name__)

# Made once, because sync_to_async inspects its argument, which costs more than many calls.
_in_djangos_thread = sync_to_async(lambda job: job())
_started: set["_UncancellableTask"] = set()  # strong references: the event loop keeps only weak ones


class _UncancellableTask(asyncio.Task[None]):
    """A task that ignores ``cancel``, so that ``asyncio.run`` waits for its end."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class _Work(Generic[Result]):
    """One call. If its task is cancelled, the result is undone: by the thread, or by the task if it exists already."""

    result: Result

    def __init__(self, call: Callable[[], Result], undo: Callable[[Result], object] | None) -> None:
        self._call, self._undo = call, undo
        self._lock = threading.Lock()
        self._is_abandoned = self._is_done = False

    def run(self) -> None:
        if self._is_abandoned:
            return
        self.result = self._call()
        with self._lock:
            self._is_done = True
            is_abandoned = self._is_abandoned
        if is_abandoned:
            self.undo()

    def abandon(self) -> bool:
        """Let the thread undo the result; returns True if it exists already, so the caller must undo it."""
        with self._lock:
            self._is_abandoned = self._undo is not None
            return self._is_abandoned and self._is_done

    def undo(self) -> None:
        if self._undo is not None:
            self._undo(self.result)


async def in_thread(
    call: Callable[..., Result], *args: Any, undo: Callable[[Result], object] | None = None
) -> Result:
    """Run ``call`` in Django's thread for blocking code and return its result.

    A task that is cancelled meanwhile ends without delay; ``call`` still runs, even if it has not started yet.

    Args:
        undo: called with the result in that thread if the task was cancelled, e.g. to release a lease without a
            handle. With it, a ``call`` that has not started yet never starts.
    """
    work = _Work(partial(call, *args), undo)
    task = _start(work.run)
    try:
        await asyncio.wait([task])  # does not cancel the task
    except asyncio.CancelledError:
        task.add_done_callback(_log_failure)
        if work.abandon():
            await asyncio.wait([_start(work.undo)])
        raise
    task.result()
    return work.result


def for_asyncio(
    method: Callable[Concatenate[Self, Params], Result],
) -> Callable[Concatenate[Self, Params], Coroutine[Any, Any, Result]]:
    """Return the coroutine method that runs ``method`` in that thread: ``alocked = for_asyncio(locked)``."""

    @wraps(method)
    async def twin(self: Self, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return await in_thread(partial(getattr(self, method.__name__), *args, **kwargs))

    twin.__doc__ = f"``{method.__name__}`` for asyncio."
    return twin


def run_soon(call: Callable[..., None], *args: Any) -> None:
    """Run ``call`` in that thread, before later calls, without waiting for it."""
    _start(partial(call, *args)).add_done_callback(_log_failure)


def _start(job: Callable[[], None]) -> _UncancellableTask:
    # The job reaches the thread before the calling task can be cancelled, because tasks take turns.
    task = _UncancellableTask(_in_djangos_thread(job), loop=asyncio.get_running_loop())
    _started.add(task)
    task.add_done_callback(_started.discard)
    return task


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.info("a call that no task waits for failed: %s", error)
