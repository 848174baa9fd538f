"""This process's own clock. It can only make a holder stop earlier; who holds is decided by the database."""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def monotonic() -> float:
    """Return seconds from a fixed point, never stepping back and, on Linux, counting a suspended machine's sleep."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)
