"""Fixtures: services, and senders and listeners of processes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resourcepool.hints.threads import Sender
from tests.committed import *  # noqa: F403 (fixtures)
from tests.hints.receiver import End
from tests.hints.services import KINDS, Service, started


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture(scope="module", params=KINDS)
def running(request: pytest.FixtureRequest, django_db_setup: None) -> Iterator[Service]:
    """Every service that carries hints."""
    with started(request.param) as service:
        yield service


@pytest.fixture
def service(running: Service, settings: Any) -> Iterator[Service]:
    """The same, selected in the settings."""
    choose(settings, running.hints)
    yield running
    choose(settings, None)  # or the threads of the test would go on asking for it


@pytest.fixture
def lasting(service: Service) -> Service:
    """Every service that is a server, and can be stopped."""
    if service.server is None:
        pytest.skip("there is no server")
    return service


@pytest.fixture
def end() -> Iterator[Callable[[str], End]]:
    """Create listeners as in other processes, at the given addresses."""
    made: list[End] = []

    def make(address: str) -> End:
        made.append(End(address))
        return made[-1]

    yield make
    for one in made:
        one.listener._is_stopping = True
        one.listener._rest.wake()
    for one in made:
        one.listener.stop()


@pytest.fixture
def sender() -> Sender:
    """A sender as in another process."""
    return Sender()


def choose(settings: Any, hints: str | None) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HINTS": hints}
