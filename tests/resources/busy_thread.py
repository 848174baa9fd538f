"""Keeps Django's thread for blocking code busy."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable

from asgiref.sync import sync_to_async


async def soon(predicate: Callable[[], object]) -> None:
    """Wait until the predicate is true, without that thread."""
    async with asyncio.timeout(10):
        while not predicate():
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def occupied() -> AsyncIterator[None]:
    """Keep that thread busy for a block; other code for it waits."""
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert go_on.wait(60)

    task = asyncio.ensure_future(sync_to_async(work)())
    await soon(begun.is_set)
    try:
        yield
    finally:
        go_on.set()
        await task
