"""Runs blocking code for asyncio. If its task is cancelled, it is carried out all the same, or its result undone."""

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

# Made once: it looks at what it is given by reflection, which costs more than many calls.
_in_djangos_thread = sync_to_async(lambda job: job())
_started: set["_Steady"] = set()  # strong references: the event loop keeps only weak ones


class _Steady(asyncio.Task[None]):
    """A task that cannot be cancelled: ``asyncio.run`` cancels all tasks before it ends, and waits for this one."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class _Work(Generic[Result]):
    """One call. If its task is cancelled, its result is undone: by the thread, or if it is there, by the task."""

    result: Result

    def __init__(self, call: Callable[[], Result], undo: Callable[[Result], object] | None) -> None:
        self._call, self._undo = call, undo
        self._lock = threading.Lock()
        self._is_unwanted = self._is_done = False

    def run(self) -> None:
        if self._is_unwanted:
            return
        self.result = self._call()
        with self._lock:
            self._is_done = True
            unwanted = self._is_unwanted
        if unwanted:
            self.undo()

    def walk_away(self) -> bool:
        """Have the thread undo the result; return True if the caller has to, because it is there already."""
        with self._lock:
            self._is_unwanted = self._undo is not None
            return self._is_unwanted and self._is_done

    def undo(self) -> None:
        if self._undo is not None:
            self._undo(self.result)


async def in_thread(
    call: Callable[..., Result], *args: Any, undo: Callable[[Result], object] | None = None
) -> Result:
    """Run ``call`` in Django's thread for blocking code and return its result.

    A task that is cancelled meanwhile ends without delay; ``call`` is carried out all the same, even if it has not
    begun yet.

    Args:
        undo: called with the result then, in that thread: nobody would release a lease that nobody knows of. With it,
            a ``call`` that has not begun yet never does.
    """
    work = _Work(partial(call, *args), undo)
    task = _start(work.run)
    try:
        await asyncio.wait([task])  # which does not cancel what it waits for
    except asyncio.CancelledError:
        task.add_done_callback(_note_failure)
        if work.walk_away():
            await asyncio.wait([_start(work.undo)])
        raise
    task.result()
    return work.result


def for_asyncio(
    method: Callable[Concatenate[Self, Params], Result],
) -> Callable[Concatenate[Self, Params], Coroutine[Any, Any, Result]]:
    """Return the coroutine method that does the same in that thread: ``alocked = for_asyncio(locked)``."""

    @wraps(method)
    async def twin(self: Self, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return await in_thread(partial(getattr(self, method.__name__), *args, **kwargs))

    twin.__doc__ = f"``{method.__name__}`` for asyncio."
    return twin


def run_soon(call: Callable[..., None], *args: Any) -> None:
    """Have ``call`` run in that thread, before whatever is sent there later; nobody waits for it."""
    _start(partial(call, *args)).add_done_callback(_note_failure)


def _start(job: Callable[[], None]) -> _Steady:
    # It is sent to the thread before its starter can be cancelled: tasks take their steps in turn.
    task = _Steady(_in_djangos_thread(job), loop=asyncio.get_running_loop())
    _started.add(task)
    task.add_done_callback(_started.discard)
    return task


def _note_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.info("nobody waits any more for what failed: %s", error)
