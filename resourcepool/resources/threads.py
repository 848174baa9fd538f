"""Runs blocking code for asyncio without losing what it returns when the caller is cancelled."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from asgiref.sync import sync_to_async

Result = TypeVar("Result")


async def in_thread(
    work: Callable[..., Result], *args: Any, undo: Callable[[Result], object] | None = None
) -> Result:
    """Run ``work`` in Django's thread for blocking code and return its result.

    Args:
        undo: called with the result, in that thread, when the awaiting task was cancelled meanwhile: a
            thread cannot be stopped, and a lease that nobody knows of would be renewed for ever.
    """
    running = asyncio.ensure_future(sync_to_async(work)(*args))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if undo is not None:
            result = await running
            await sync_to_async(undo)(result)
        raise
