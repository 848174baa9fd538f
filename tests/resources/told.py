"""What is told during a test."""

from typing import Any

import pytest

from resourcepool.signals import SIGNALS, Fact


@pytest.fixture
def facts() -> Any:
    """Everything that is told during the test."""
    heard: list[Fact] = []

    def note(fact: Fact, **_: Any) -> None:
        heard.append(fact)

    for signal in set(SIGNALS.values()):
        signal.connect(note, weak=False, dispatch_uid="test")
    yield heard
    for signal in set(SIGNALS.values()):
        signal.disconnect(dispatch_uid="test")
