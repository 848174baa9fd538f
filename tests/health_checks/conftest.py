"""Every test here works on committed rows."""

from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool.signals import SIGNALS, RowEvent
from tests.committed import *  # noqa: F403 (fixtures)
from tests.health_checks.scripted_checker import ScriptedChecker


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture
def scripted(settings: Any) -> Iterator[type[ScriptedChecker]]:
    """Check proxies with the scripted checker."""
    chosen = {"resourcepool.Proxy": {"checker": f"{ScriptedChecker.__module__}.ScriptedChecker", "timeout": 5}}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": chosen}
    yield ScriptedChecker
    ScriptedChecker.forget()


@pytest.fixture
def told() -> Iterator[list[RowEvent]]:
    """The events that signals send from now on."""
    events: list[RowEvent] = []

    def note(event: RowEvent, **_: Any) -> None:
        events.append(event)

    for signal in set(SIGNALS.values()):
        signal.connect(note)
    yield events
    for signal in set(SIGNALS.values()):
        signal.disconnect(note)
