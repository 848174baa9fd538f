"""The database server restarts, crashes or hangs while leases are held and waited for."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections

from project.databases import database
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.models import Proxy, Ticket
from tests.eventually import eventually
from tests.forks import Forks
from tests.servers import MariaDB, PostgreSQL, Server
from tests.spawned import ROOT, Spawner

pytestmark = [pytest.mark.only("mysql", "postgresql")]

KINDS: dict[str, type[Server]] = {"mysql": MariaDB, "postgresql": PostgreSQL}
SHORT, LONG = 3.0, 40.0  # a slow machine renews the short one in time, too
BACK = 30.0  # seconds in which everything goes on once the server answers again: no lease has to run out first


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A separate database server, unused by other tests."""
    with KINDS[connection.vendor](max_connections=50) as server:
        environment = {"DATABASE_URL": server.url, "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE}
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "-v0"],
            cwd=ROOT,
            env={**os.environ, **environment},
            check=True,
        )
        yield server


@pytest.fixture(scope="module")
def forks_there() -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def start(server: Server, forks_there: Forks) -> Iterator[Spawner]:
    """Start processes on that server."""
    spawner = Spawner(server.url, forks_there)
    spawner(make_rows).succeed()
    yield spawner
    spawner.close()


def make_rows() -> None:
    Proxy.objects.all()._raw_delete("default")
    for number, country in enumerate(["US", "DE", "FR"]):
        Proxy.objects.create(host=f"{number}.example", port=1, country=country)


def hold(country: str, ttl: float) -> None:
    """Hold a lease until it is lost or the process is asked to end."""
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    lease: Any = Proxy.pool.acquire(country=country, ttl=ttl, timeout=60)
    print("holds", country, flush=True)
    try:
        while not asked:
            lease.ensure_held()
            time.sleep(0.01)
        lease.renew()
        lease.release()
    except LeaseLost:
        print("lost", flush=True)
    else:
        print("kept to the end", flush=True)


def come_while_it_is_gone() -> None:
    try:
        Proxy.pool.acquire(wait=False)
    except DatabaseUnavailable:
        print("unavailable", flush=True)
    hold("FR", LONG)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_loses_only_leases_that_could_not_be_renewed_in_time(
    server: Server, start: Spawner, end: str
) -> None:
    long, short = start(hold, "US", LONG), start(hold, "DE", SHORT)
    long.line("holds US")
    short.line("holds DE")
    waiter = start(hold, "DE", LONG)
    eventually(lambda: waits(server))

    getattr(server, end)()
    gone_at = time.monotonic()
    short.line("lost")
    newcomer = start(come_while_it_is_gone)
    newcomer.line("unavailable")
    eventually(lambda: time.monotonic() - gone_at > SHORT)

    server.start()
    waiter.line("holds DE", timeout=BACK)
    newcomer.line("holds FR", timeout=BACK)
    for child in (long, waiter, newcomer):
        child.send(signal.SIGTERM)
        assert "kept to the end" in child.succeed(BACK)
    short.succeed(BACK)


def test_a_hanging_server_does_not_delay_the_notice_of_the_loss(server: Server, start: Spawner) -> None:
    long, short = start(hold, "US", LONG), start(hold, "DE", SHORT)
    long.line("holds US")
    short.line("holds DE")
    waiter = start(hold, "DE", LONG)
    eventually(lambda: waits(server))
    with hanging(server):
        short.line("lost")
    waiter.line("holds DE", timeout=BACK)
    for child in (long, waiter):
        child.send(signal.SIGTERM)
        assert "kept to the end" in child.succeed(BACK)


@contextlib.contextmanager
def hanging(server: Server) -> Iterator[None]:
    """Stop the server and its children (one per connection, on PostgreSQL); continue them afterwards."""
    assert server.process
    root = server.process.pid
    os.kill(root, signal.SIGSTOP)  # first, so that it makes no more of them
    children = Path(f"/proc/{root}/task/{root}/children").read_text().split()
    everybody = [root, *map(int, children)]
    try:
        send(signal.SIGSTOP, everybody)
        yield
    finally:
        send(signal.SIGCONT, everybody)


def send(sign: int, pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it has just ended its connection
            os.kill(pid, sign)


def waits(server: Server) -> bool:
    """Whether there are waiters on that server."""
    own: Any = connections.create_connection("default")
    own.settings_dict = {**own.settings_dict, **database(server.url)}
    try:
        with own.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {Ticket._meta.db_table}")
            return bool(cursor.fetchone()[0])
    finally:
        own.close()
