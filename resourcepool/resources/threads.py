"""Runs blocking code for asyncio without losing what it returns when the caller is cancelled."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from asgiref.sync import sync_to_async

Result = TypeVar("Result")

_undoing: set[asyncio.Future[Any]] = set()  # strong references: the event loop keeps only weak ones


class _Work(Generic[Result]):
    """One call, and who has to undo it if nobody wants its result any more: the thread, or who walks away."""

    def __init__(self, call: Callable[[], Result], undo: Callable[[Result], object] | None) -> None:
        self._call, self._undo = call, undo
        self._lock = threading.Lock()
        self._is_unwanted = False
        self._results: list[Result] = []

    def run(self) -> Result:
        result = self._call()
        with self._lock:
            self._results.append(result)
            unwanted = self._is_unwanted
        if unwanted:
            self.undo()
        return result

    def walk_away(self) -> bool:
        """Note that nobody waits for the result; returns whether there is one already, to be undone."""
        with self._lock:
            self._is_unwanted = True
            return bool(self._results)

    def undo(self) -> None:
        if self._undo is not None:
            self._undo(self._results[0])


async def in_thread(
    call: Callable[..., Result], *args: Any, undo: Callable[[Result], object] | None = None
) -> Result:
    """Run ``call`` in Django's thread for blocking code and return its result.

    Args:
        undo: called with the result, in that thread, when the awaiting task was cancelled meanwhile: a
            thread cannot be stopped, and a lease that nobody knows of would be renewed for ever.
    """
    work = _Work(lambda: call(*args), undo)
    try:
        return await sync_to_async(work.run)()
    except asyncio.CancelledError:
        if work.walk_away():
            undoing = asyncio.ensure_future(sync_to_async(work.undo)())
            _undoing.add(undoing)
            undoing.add_done_callback(_undoing.discard)
            await asyncio.shield(undoing)
        raise
