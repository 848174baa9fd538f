"""All tests here use committed rows."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from resourcepool.leases import verbs
from resourcepool.signals import lease_leaked, lease_lost, lease_released
from tests.app.models import Device, Poll
from tests.app.rows import Model, leased_models, new
from tests.committed import *  # noqa: F403 (fixtures)
from tests.leases.outage import Outage


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


def told_apart() -> list[Model]:
    """Return on SQLite every leased model; on servers those keyed by UUID and by text: the rest there uses numbers."""
    return leased_models() if connection.vendor == "sqlite" else [Device, Poll]


@pytest.fixture(params=told_apart(), ids=lambda model: model._meta.label)
def model(request: pytest.FixtureRequest) -> Model:
    return request.param


@pytest.fixture
def row(model: Model) -> Any:
    return new(model)


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    outage = Outage()
    monkeypatch.setattr(verbs, "renew_unless_locked", outage)
    return outage


@pytest.fixture
def receivers_that_exit() -> Iterator[None]:
    """Receivers that want the process to end, as one may when a lease is lost."""

    def leave(**_: Any) -> None:
        sys.exit("leave")

    signals = (lease_lost, lease_leaked, lease_released)
    for signal in signals:
        signal.connect(leave)
    yield
    for signal in signals:
        signal.disconnect(leave)
