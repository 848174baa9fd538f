"""What threads and asyncio do alike is written once, as a coroutine that is told by which of the two ways to wait.

A thread does itself what blocks, so the coroutine is never suspended, and ``at_once`` runs it to its end. A task of
asyncio awaits it: what blocks is done in Django's thread for that, and waiting occupies no thread.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import connections

from resourcepool import dialect
from resourcepool.async_threads import in_thread, soon
from resourcepool.bell import Bell
from resourcepool.waiting.acquire import Leases, aacquire, acquire
from resourcepool.waiting.request import Request, Source

P = ParamSpec("P")
R = TypeVar("R")


def never() -> bool:
    """Tell that nothing is to stop."""
    return False


async def nothing() -> None:
    """Do nothing."""


def at_once(work: Callable[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what the coroutine ``work`` returns, which waits as ``BLOCKING`` does."""
    try:
        work(*args, **kwargs).send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    raise RuntimeError(f"{work} awaits something in a thread without a loop")


class Way:
    """How the caller waits: as a thread, or as a task of asyncio."""

    def __init__(self, *, is_task: bool) -> None:
        self._is_task = is_task

    async def either(self, blocks: Callable[[], R], awaits: Callable[[], Awaitable[R]]) -> R:
        """Return what the first returns in a thread, or the second in a task."""
        return await awaits() if self._is_task else blocks()

    async def call(self, do: Callable[..., R], *args: Any, undo: Callable[[R], object] | None = None) -> R:
        """Do what blocks; a task that is cancelled meanwhile has its result undone, see ``in_thread``."""
        return await self.either(partial(do, *args), partial(in_thread, do, *args, undo=undo))

    async def acquire(
        self,
        source: Source,
        request: Request,
        once_in_line: Callable[[], Coroutine[Any, Any, object]] = nothing,
        stop: Callable[[], bool] = never,
    ) -> Leases:
        """See ``waiting.acquire``."""
        return await self.either(
            lambda: acquire(source, request, stop, lambda: at_once(once_in_line)),
            lambda: aacquire(source, request, once_in_line, None if stop is never else stop),
        )

    def soon(self, do: Callable[..., None], *args: Any) -> None:
        """Do what blocks; a task does not wait for it, so no cancellation comes in between."""
        if self._is_task:
            soon(do, *args)
        else:
            do(*args)

    def bell(self) -> Any:
        """Return what is rung by any thread, and heard by the caller."""
        return _TaskBell() if self._is_task else _ThreadBell()

    def end_session(self, using: str) -> None:
        """Close the connection of this thread during a long wait; that of a task occupies none."""
        if not self._is_task:
            dialect.close_ours(connections[using])


class _ThreadBell(Bell):
    async def heard(self, seconds: float) -> bool:
        """Wait until it is rung, or for so many seconds; tells whether it was."""
        return self.wait(seconds)


class _TaskBell:
    def __init__(self) -> None:
        self._loop, self._is_rung = asyncio.get_running_loop(), asyncio.Event()

    def ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            self._loop.call_soon_threadsafe(self._is_rung.set)

    async def heard(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # ``wait_for`` of Python 3.11 may miss the task's end
                await self._is_rung.wait()
        return self._is_rung.is_set()


BLOCKING, AWAITING = Way(is_task=False), Way(is_task=True)
