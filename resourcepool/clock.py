"""This process's monotonic clock. It only makes holders stop earlier; the database decides who holds a lease."""

import time
from collections.abc import Callable
from functools import partial

# Seconds since a fixed point. It never steps back and, on Linux, includes the time a machine was suspended.
# A C function, because every lease reads it several times.
monotonic: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
