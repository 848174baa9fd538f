"""Sleep of the main thread that a signal can end."""

import time

POLL = 0.5  # seconds: Python may miss a signal that arrives just as the main thread begins to wait


def interruptible_sleep(seconds: float) -> None:
    """Sleep for ``seconds``; an exception of a signal handler ends it within half a second."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, POLL))
