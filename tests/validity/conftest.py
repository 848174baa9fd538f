"""Every test here works on committed rows."""

from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool.signals import SIGNALS, Fact
from tests.committed import *  # noqa: F403 (fixtures)
from tests.validity.scripted import Scripted


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture
def scripted(settings: Any) -> Iterator[type[Scripted]]:
    """Have proxies checked by a checker that says what the test says."""
    chosen = {"resourcepool.Proxy": {"checker": f"{Scripted.__module__}.Scripted", "timeout": 5}}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": chosen}
    yield Scripted
    Scripted.forget()


@pytest.fixture
def told() -> Iterator[list[Fact]]:
    """What the signals tell from now on."""
    facts: list[Fact] = []

    def note(fact: Fact, **_: Any) -> None:
        facts.append(fact)

    for signal in set(SIGNALS.values()):
        signal.connect(note)
    yield facts
    for signal in set(SIGNALS.values()):
        signal.disconnect(note)
