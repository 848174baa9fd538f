"""A history that is kept, and an end of it to each test."""

from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool.history.recorder import recorder
from resourcepool.models import Event
from tests.committed import statements, transactional_db
from tests.history.told import proxy, quick

__all__ = ["proxy", "quick", "statements", "transactional_db"]


@pytest.fixture(autouse=True)
def history(settings: Any, transactional_db: None) -> Iterator[None]:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    yield
    recorder._waiting.clear()
    Event.objects.all()._raw_delete("default")
