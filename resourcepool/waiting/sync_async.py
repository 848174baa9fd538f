"""Shares code between threads and asyncio: written once, as a coroutine whose first argument is a ``Mode``.

``run_sync`` runs it in a thread: with ``SYNC``, blocking calls are made directly, so the coroutine is never suspended.
A task awaits it with ``ASYNC``: blocking calls run in Django's thread for them, and waiting does not block a thread.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.db import connections
from django.utils.asyncio import async_unsafe

from resourcepool import dialect
from resourcepool.threads.async_threads import in_thread, run_soon
from resourcepool.threads.signal_safe_event import SignalSafeEvent
from resourcepool.waiting.acquire import Leases, aacquire, acquire
from resourcepool.waiting.request import Request, Source

P = ParamSpec("P")
R = TypeVar("R")


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

    async def acquire(
        self,
        source: Source,
        request: Request,
        on_enqueued: "Callable[[Mode], Coroutine[Any, Any, object]] | None" = None,
        stop: Callable[[], bool] = never,
    ) -> Leases:
        """See ``waiting.acquire``."""
        if self._is_async:
            stops = None if stop is never else stop
            return await aacquire(source, request, on_enqueued and partial(on_enqueued, ASYNC), stops)
        return acquire(source, request, stop, partial(run_sync, on_enqueued) if on_enqueued else never)

    def soon(self, do: Callable[..., None], *args: Any) -> None:
        """Make a blocking call without waiting for it in a task, which therefore cannot be cancelled meanwhile."""
        if self._is_async:
            run_soon(do, *args)
        else:
            do(*args)

    def wake_event(self) -> Any:
        """Return an object that any thread can ring to end the caller's wait."""
        return _AsyncBell() if self._is_async else _SyncBell()

    def end_session(self, using: str) -> None:
        """Close this thread's connection during a long wait; a waiting task has none."""
        if not self._is_async:
            dialect.close_own_session(connections[using])


SYNC, ASYNC = Mode(is_async=False), Mode(is_async=True)


@async_unsafe("in a task, await the async method: the same name with the prefix a")
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


class _SyncBell(SignalSafeEvent):
    is_orphaned = False

    async def wait_async(self, seconds: float) -> bool:
        """Wait until it is rung, or ``seconds`` have passed; return whether it was rung."""
        return self.wait(seconds)


class _AsyncBell:
    def __init__(self) -> None:
        self._loop, self._is_rung = asyncio.get_running_loop(), asyncio.Event()

    @property
    def is_orphaned(self) -> bool:
        """Whether its task will never run again, because the loop is closed."""
        return self._loop.is_closed()

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, with the task
            self._loop.call_soon_threadsafe(self._is_rung.set)

    async def wait_async(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # ``wait_for`` of Python 3.11 may miss a cancellation
                await self._is_rung.wait()
        return self._is_rung.is_set()
