"""For how long the test that runs has been running: a busy machine makes that longer, and so it is allowed for."""

import time

_began_at = 0.0


def begin() -> None:
    """Called as each test is set up."""
    global _began_at  # noqa: PLW0603 (one test runs at a time in a process)
    _began_at = time.monotonic()


def seconds() -> float:
    return time.monotonic() - _began_at
