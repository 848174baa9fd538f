"""This process's own clock. It can only make a holder stop earlier; who holds is decided by the database."""

import time
from collections.abc import Callable
from functools import partial

# Seconds from a fixed point. It never steps back and, on Linux, counts a suspended machine's sleep.
# No function of Python's own around it: every lease reads it several times.
monotonic: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
