"""Shares code between threads and asyncio: written once, as a coroutine whose first argument is a ``Mode``.

``run_sync`` runs it in a thread: with ``SYNC``, blocking calls are made directly, so the coroutine is never suspended.
A task awaits it with ``ASYNC``: blocking calls run in Django's thread for them, and waiting does not block a thread.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.utils.asyncio import async_unsafe

from resourcepool.threads.async_threads import in_thread, run_soon
from resourcepool.threads.signal_safe_event import SignalSafeEvent

P = ParamSpec("P")
R = TypeVar("R")

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

    async def either(self, blocks: Callable[[], R], awaits: Callable[[], Awaitable[R]]) -> R:
        """Call ``blocks`` in a thread, await ``awaits`` in a task; returns the result."""
        return await awaits() if self._is_async else blocks()

    async def call(self, do: Callable[..., R], *args: Any, undo: Callable[[R], object] | None = None) -> R:
        """Make a blocking call; if the task is cancelled meanwhile, ``undo`` gets its result (see ``in_thread``)."""
        return await self.either(partial(do, *args), partial(in_thread, do, *args, undo=undo))

    def soon(self, do: Callable[..., None], *args: Any) -> None:
        """Make a blocking call without waiting for it in a task, which therefore cannot be cancelled meanwhile."""
        if self._is_async:
            run_soon(do, *args)
        else:
            do(*args)

    def wake_event(self) -> Any:
        """Return an object that any thread can use to end the caller's wait."""
        return _AsyncWakeEvent() if self._is_async else _SyncWakeEvent()


SYNC, ASYNC = Mode(is_async=False), Mode(is_async=True)


@async_unsafe(USE_ASYNC)
def run_sync(
    work: Callable[Concatenate[Mode, P], Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Run the coroutine function ``work`` with ``SYNC`` and return its result.

    Raises:
        SynchronousOnlyOperation: in a task, before anything is done.
    """
    try:
        work(SYNC, *args, **kwargs).send(None)
    except StopIteration as end:
        result: R = end.value
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
