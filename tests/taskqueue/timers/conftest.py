"""What tests of timers share."""

from typing import Any

import pytest

from resourcepool.taskqueue import timers


@pytest.fixture
def seen() -> list[Any]:
    """Handle the topic "t" by recording the handler's arguments."""
    got: list[Any] = []

    @timers.on("t")
    def note(one: timers.RunningTimer) -> None:
        got.append(one)

    return got
