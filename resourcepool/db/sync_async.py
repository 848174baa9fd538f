"""Shares code between threads and asyncio: written once, as a coroutine whose first argument is a ``Mode``.

``run_sync`` runs it in a thread: with ``SYNC``, blocking calls are made directly, so the coroutine is never suspended.
A task awaits it with ``ASYNC``: blocking calls run in Django's thread for them, and waiting does not block a thread.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.utils.asyncio import async_unsafe

from resourcepool.db.threads import SignalSafeEvent

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


def _start(job: Callable[[], None]) -> _UncancellableTask:
    # The job reaches the thread before the calling task can be cancelled, because tasks take turns.
    task = _UncancellableTask(_in_djangos_thread(job), loop=asyncio.get_running_loop())
    _started.add(task)
    task.add_done_callback(_started.discard)
    return task


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.info("a call that no task waits for failed: %s", error)


USE_ASYNC = "in a task, await the async method: the same name with the prefix a"


def never() -> bool:
    """Return False; the default ``stop`` condition."""
    return False


class Mode:
    """Makes blocking calls for a coroutine: directly, or in Django's thread for them."""

    def __init__(self, *, is_async: bool) -> None:
        self._is_async = is_async

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The running event loop; None in a thread."""
        return asyncio.get_running_loop() if self._is_async else None

    async def either(self, blocks: Callable[[], Result], awaits: Callable[[], Awaitable[Result]]) -> Result:
        """Call ``blocks`` in a thread, await ``awaits`` in a task; returns the result."""
        return await awaits() if self._is_async else blocks()

    async def call(
        self, do: Callable[..., Result], *args: Any, undo: Callable[[Result], object] | None = None
    ) -> Result:
        """Make a blocking call; if the task is cancelled meanwhile, ``undo`` gets its result (see ``in_thread``)."""
        return await self.either(partial(do, *args), partial(in_thread, do, *args, undo=undo))

    def soon(self, do: Callable[..., None], *args: Any) -> None:
        """Make a blocking call without waiting for it in a task, which therefore cannot be cancelled meanwhile."""
        if self._is_async:  # in that thread, before later calls
            _start(partial(do, *args)).add_done_callback(_log_failure)
        else:
            do(*args)

    def wake_event(self) -> Any:
        """Return an object that any thread can use to end the caller's wait."""
        return _AsyncWakeEvent() if self._is_async else _SyncWakeEvent()


SYNC, ASYNC = Mode(is_async=False), Mode(is_async=True)


@async_unsafe(USE_ASYNC)
def run_sync(
    work: Callable[Concatenate[Mode, Params], Coroutine[Any, Any, Result]],
    *args: Params.args,
    **kwargs: Params.kwargs,
) -> Result:
    """Run the coroutine function ``work`` with ``SYNC`` and return its result.

    Raises:
        SynchronousOnlyOperation: in a task, before anything is done.
    """
    try:
        work(SYNC, *args, **kwargs).send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise RuntimeError(f"{work} awaits something in a thread without a loop")


class _SyncWakeEvent(SignalSafeEvent):
    is_orphaned = False

    async def wait_async(self, seconds: float) -> bool:
        """Wait until it is woken, or ``seconds`` have passed; return whether it was woken."""
        return self.wait(seconds)


class _AsyncWakeEvent:
    def __init__(self) -> None:
        self._loop, self._is_set = asyncio.get_running_loop(), asyncio.Event()

    @property
    def is_orphaned(self) -> bool:
        """Whether its task will never run again, because the loop is closed."""
        return self._loop.is_closed()

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, with the task
            self._loop.call_soon_threadsafe(self._is_set.set)

    async def wait_async(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # ``wait_for`` of Python 3.11 may miss a cancellation
                await self._is_set.wait()
        return self._is_set.is_set()
