"""Records events during a test."""

from typing import Any

import pytest

from resourcepool.signals import SIGNALS, RowEvent


@pytest.fixture
def events() -> Any:
    """All events of the test."""
    heard: list[RowEvent] = []

    def note(event: RowEvent, **_: Any) -> None:
        heard.append(event)

    for signal in set(SIGNALS.values()):
        signal.connect(note, weak=False, dispatch_uid="test")
    yield heard
    for signal in set(SIGNALS.values()):
        signal.disconnect(dispatch_uid="test")
