"""Records events during a test, and makes the changes that send them."""

from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.signals import SIGNALS, RowEvent

CHANGES: dict[str, Callable[[Any], object]] = {
    "drain": lambda rows: rows.drain("new cable", duration=60),
    "reserve": lambda rows: rows.reserve("alice", "tests"),
    "retire": lambda rows: rows.retire(),
    "quarantine": lambda rows: rows.quarantine("smells", 60),
    "return_to_service": lambda rows: rows.return_to_service(),
    "return_due": lambda rows: rows.return_due(),
    "revoke": lambda rows: rows.revoke("stuck"),
    "delete": lambda rows: rows.delete(),
}


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
