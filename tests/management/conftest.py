"""Fixtures for tests of the operator's commands."""

from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool.history.recorder import recorder
from resourcepool.models import Event, QueueGroup
from resourcepool.queues import administration
from tests.committed import statements, transactional_db

__all__ = ["statements", "transactional_db"]


@pytest.fixture
def history(settings: Any, transactional_db: None) -> Iterator[None]:
    """A history on committed rows that is emptied after each test."""
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    yield
    recorder._waiting.clear()
    Event.objects.all()._raw_delete("default")


@pytest.fixture
def orders(transactional_db: None) -> QueueGroup:
    return administration.create("orders", [str(number) for number in range(8)])
