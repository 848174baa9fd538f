"""Queue servers, each a process, that are all disconnected from the database, or all paused, for too long."""

import signal
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import urlsplit

import pytest
from django.db import connection

from resourcepool.models import Move, Server
from resourcepool.queues import QueueServer
from tests.concurrency.connection_cutter import Wire
from tests.eventually import eventually
from tests.forks import Forks
from tests.queues.members import NAME, create_queue_group, owners
from tests.spawned import Child, Spawner

pytestmark = [
    pytest.mark.only("mysql", "postgresql"),
    pytest.mark.usefixtures("transactional_db"),
]

SERVERS, QUEUES = "ABCD", 64
SHARE = QUEUES // len(SERVERS)


@pytest.fixture
def wires() -> Iterator[list[Wire]]:
    """The relay between the processes and the database server."""
    settings = connection.settings_dict
    wires = [Wire(settings["HOST"], int(settings["PORT"]))]
    yield wires
    for wire in wires:
        wire.close()


@pytest.fixture
def spawn_through(wires: list[Wire], database_url: str) -> Iterator[Spawner]:
    url = urlsplit(database_url)
    far_end = f"{url.netloc.rpartition('@')[0]}@127.0.0.1:{wires[0].port}"
    forks = Forks()
    spawner = Spawner(url._replace(netloc=far_end).geturl(), forks)
    yield spawner
    spawner.close()
    forks.close()


def cut_off(wires: list[Wire], children: list[Child]) -> Callable[[], object]:
    wires[0].close()
    settings, port = connection.settings_dict, wires[0].port
    return lambda: wires.append(eventually_wired(settings["HOST"], int(settings["PORT"]), port))


def eventually_wired(host: str, port: int, own_port: int) -> Wire:
    """Return a relay on this port, once the previous one has released it."""
    found: list[Wire] = []

    def is_wired() -> bool:
        try:
            found.append(Wire(host, port, own_port))
        except OSError:
            return False
        return True

    eventually(is_wired)
    return found[0]


def stopped(wires: list[Wire], children: list[Child]) -> Callable[[], object]:
    for child in children:
        child.send(signal.SIGSTOP)
    return lambda: [child.send(signal.SIGCONT) for child in children]


@pytest.mark.parametrize("away", [cut_off, stopped])
def test_all_servers_have_the_same_queues_afterwards(
    away: Callable[[list[Wire], list[Child]], Callable[[], object]], wires: list[Wire], spawn_through: Spawner
) -> None:
    create_queue_group(QUEUES, heartbeat_every=0.5, judge_dead_after=3, handover_timeout=30)
    children = [spawn_through(serve, name) for name in SERVERS]
    eventually(partial(are_shared, 0), 30, owners)
    before, moved = owners(), Move.objects.count()
    come_back = away(wires, children)
    eventually(lambda: not Server.objects.alive().exists(), 30)
    come_back()
    eventually(partial(are_shared, moved + QUEUES), 30, owners)
    assert owners() == before
    reasons = Move.objects.order_by("pk").values_list("reason", flat=True)[moved:]
    assert [reason for reason in reasons if "came back as" not in reason] == []
    for child in children:
        child.send(signal.SIGTERM)
    for child in children:
        child.succeed()


def are_shared(moves: int) -> bool:
    """Whether every living server has its share, and there were so many moves at least."""
    names = owners().split()
    alive = Server.objects.alive().count() == Server.objects.count() == len(SERVERS)
    return alive and all(names.count(name) == SHARE for name in SERVERS) and Move.objects.count() >= moves


def serve(name: str) -> None:
    with QueueServer(NAME, name=name) as server:
        server.stop_on_signals()
        while not server.stopping:
            for queue in server.queues():
                queue.skip_for(0.1)
