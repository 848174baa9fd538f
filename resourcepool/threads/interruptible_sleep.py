"""Pauses of a main thread that a signal is to end."""

import time

POLL = 0.5  # seconds: Python may overlook a signal that arrives just as the main thread begins to wait


def interruptible_sleep(seconds: float) -> None:
    """Wait for so many seconds; what a signal handler raises ends it within half a second."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, POLL))
