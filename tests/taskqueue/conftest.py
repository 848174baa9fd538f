"""Every test here works on committed rows."""

import socket
from collections.abc import Iterator

import pytest

from project.celery import app
from resourcepool.models import Stream
from tests.committed import *  # noqa: F403 (fixtures)
from tests.concurrency.connection_cutter import Wire, wired


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture(autouse=True)
def _forgotten_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resourcepool.taskqueue.handlers.task_registry.known", {})
    monkeypatch.setattr("resourcepool.taskqueue.timers.handlers.timer_registry.known", {})


@pytest.fixture
def wire() -> Iterator[Wire]:
    """The connection to the database server, whose replies can be lost."""
    with wired() as (wire, _):
        Stream.objects.exists()  # connects
        yield wire


@pytest.fixture
def mute_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Celery's broker takes connections, and says nothing."""
    monkeypatch.setattr("resourcepool.hints.broker.CONNECT_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(app.conf, "broker_url", f"redis://127.0.0.1:{server.getsockname()[1]}/0")
        app.set_default()
        yield
