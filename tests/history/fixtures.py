"""A history for tests that read it. Import ``history``, and each test of the module has one."""

from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool.history.recorder import recorder
from resourcepool.models import Event


@pytest.fixture(autouse=True)
def history(settings: Any, transactional_db: None) -> Iterator[None]:
    """Keep a history, on committed rows; nothing of it is there before, or left after a test."""
    _forget()
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    yield
    _forget()


def _forget() -> None:
    recorder._waiting.clear()
    Event.objects.all()._raw_delete("default")


def events(model: Any, *more: str) -> list[tuple[str, ...]]:
    """Return (what, actor, reason), and these columns, of what is told of rows of this model, oldest first."""
    recorder.flush()
    rows = Event.objects.filter(pool=model._meta.label_lower).order_by("pk")
    return list(rows.values_list("what", *more, "actor", "reason"))
