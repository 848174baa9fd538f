"""Wakes an event loop now and then, so that a signal is handled while all of its tasks wait.

Python runs the handler of a signal in the main thread, between two steps. One that arrives just as that thread goes to
sleep, after it looked for signals, does not wake it: with nothing else to do asyncio sleeps for as long as a day.
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
    """Have the loop wake twice a second during this block, however many tasks are in one: waking all costs more."""
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
        if loop in _waiting:  # not so once the loop is closed and gone
            _waiting[loop] -= 1


def _wake(loop: asyncio.AbstractEventLoop) -> None:
    if _waiting[loop]:
        loop.call_later(POLL, _wake, loop)
    else:
        del _waiting[loop]
