"""Reads the recorded events."""

from typing import Any

import pytest

from resourcepool.history import recorder as recording
from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Proxy
from tests.app.rows import new


def told(row: Any) -> list[str]:
    """Return what the history says of this row, oldest first, when all that waits has been written."""
    recorder.flush()
    return list(Event.objects.of(row).order_by("pk").values_list("what", flat=True))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "EVERY", 0.2)


@pytest.fixture
def proxy() -> Any:
    return new(Proxy)
