"""Servers that do not outlive their test; tests that use them work on committed rows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resourcepool.queues import QueueServer
from tests.committed import *  # noqa: F403 (fixtures)
from tests.eventually import closing
from tests.queues.crew import NAME

Serve = Callable[..., QueueServer]


@pytest.fixture
def serve(transactional_db: None) -> Iterator[Serve]:
    """Start servers with their threads."""
    servers: list[QueueServer] = []

    def start(name: str = "A", task_type: str = NAME, **more: Any) -> QueueServer:
        servers.append(QueueServer(task_type, name=name, **more))
        return servers[-1].start()

    yield start
    for server in servers:
        closing(server.close, 0.0)
