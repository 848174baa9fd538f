"""The age of the current test: slow machines get longer limits."""

import time

_began_at = 0.0


def begin() -> None:
    """Called as each test is set up."""
    global _began_at  # noqa: PLW0603 (one test runs at a time in a process)
    _began_at = time.monotonic()


def seconds() -> float:
    return time.monotonic() - _began_at
