"""Wakes an event loop periodically, so that signals are handled while all its tasks wait.

Python runs signal handlers in the main thread, between two bytecodes. A signal that arrives just as that thread goes to
sleep, after its check for signals, does not wake it, and asyncio may sleep for a day.
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from weakref import WeakKeyDictionary

POLL = 0.5  # seconds

_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


@contextlib.contextmanager
def periodic_wakeup() -> Iterator[None]:
    """Wake the loop twice a second during this block; tasks in such blocks share one timer."""
    if threading.current_thread() is not threading.main_thread():  # no other thread handles signals
        yield
        return
    loop = asyncio.get_running_loop()
    if loop not in _waiting:
        _waiting[loop] = 0
        loop.call_later(POLL, _wake, loop)
    _waiting[loop] += 1
    try:
        yield
    finally:
        if loop in _waiting:  # false once the loop is closed and collected
            _waiting[loop] -= 1


def _wake(loop: asyncio.AbstractEventLoop) -> None:
    if _waiting[loop]:
        loop.call_later(POLL, _wake, loop)
    else:
        del _waiting[loop]
