"""Servers that do not outlive their test; tests that use them work on committed rows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from resourcepool.db.row_locks import row_locked
from resourcepool.models import QueueGroup
from resourcepool.queues import QueueServer, reassignment
from tests.committed import *  # noqa: F403 (fixtures)
from tests.concurrency.connection_cutter import Interference, Wire, wired
from tests.eventually import closing
from tests.queues.members import NAME, create_queue_group, wait_for_queues

Serve = Callable[..., QueueServer]


@pytest.fixture
def serve(transactional_db: None) -> Iterator[Serve]:
    """Start servers with their threads; with ``queues``: for a new queue group, of which it has all."""
    servers: list[QueueServer] = []

    def start(name: str = "A", queues: int = 0, *, queue_group: str = NAME, **settings: Any) -> QueueServer:
        if queues:
            create_queue_group(queues, **settings)
        servers.append(QueueServer(queue_group, name=name, **({} if queues else settings)))
        servers[-1].start()
        if queues:
            wait_for_queues(servers[-1], queues)
        return servers[-1]

    yield start
    for server in servers:
        closing(server.close, 0.0)


@pytest.fixture
def wire(transactional_db: None) -> Iterator[Wire]:
    with wired() as (wire, _):
        QueueGroup.objects.count()  # connects
        yield wire


@pytest.fixture
def interference(transactional_db: None) -> Iterator[Interference]:
    interference = Interference()
    with connection.execute_wrapper(interference):
        yield interference


@pytest.fixture
def others_plan(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the next plans of this process find the queue group's row locked, this number of times."""
    reassign, times = reassignment.reassign, [0]

    def plan_in_turn(*arguments: Any, **more: Any) -> reassignment.Outcome:
        times[0] -= 1
        if times[0] >= 0:
            raise row_locked("default")
        return reassign(*arguments, **more)

    monkeypatch.setattr(reassignment, "reassign", plan_in_turn)
    return lambda count: times.__setitem__(0, count)
