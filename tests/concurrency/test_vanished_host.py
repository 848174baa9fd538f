"""A host that vanishes inside ``guard`` does not close its connection: the server ends it, as OPTIONS say."""

import contextlib
import signal
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.db.row_locks import lockers
from resourcepool.models import Proxy
from tests.app.models import Team
from tests.app.rows import new
from tests.concurrency.stoppable_server import GO, Server, say
from tests.connection_options import short_idle, with_options
from tests.eventually import eventually
from tests.management.command_runner import run
from tests.spawned import Spawner

pytestmark = pytest.mark.only("mysql", "postgresql")

TTL = 6.0
IDLE = 5  # seconds; the recommended limit is a minute
SOON = 30  # seconds; the server's own limit is 8 hours


def stay(how: str, ttl: float) -> None:
    """Stay in a transaction in which a row was guarded, claimed or released."""
    signal.pthread_sigmask(signal.SIG_BLOCK, GO)
    lease: Any = None if how == "claim" else Proxy.pool.acquire(ttl=ttl)
    with transaction.atomic(), lease.guard() if how == "guard" else contextlib.nullcontext():
        if how == "claim":
            Proxy.pool.acquire(ttl=ttl, wait=False, allow_in_transaction=True)
        elif how == "release":
            lease.release()
        else:
            Team.objects.create(name="written by one that vanished")
        say("inside")
        signal.sigwait(GO)


@pytest.mark.parametrize("how", ["guard", "claim", "release"])
def test_its_row_is_free_after_that_limit_and_its_work_rolled_back(
    spawn: Spawner, server: Server, how: str
) -> None:
    row = new(Proxy)
    url = with_options(server.url, **short_idle(IDLE))
    spawn(stay, how, TTL, DATABASE_URL=url).line("inside")
    server.freeze()
    lease: Any = Proxy.pool.acquire(timeout=SOON)
    assert lease.pk == row.pk
    assert not Team.objects.exists()


def test_until_then_operators_see_the_session_and_how_to_end_it(spawn: Spawner, server: Server) -> None:
    row = new(Proxy)
    spawn(stay, "guard", 300, DATABASE_URL=server.url).line("inside")
    server.freeze()
    (found,) = lockers("default", Proxy, [row.pk])
    assert found.session
    close = ("close", "proxy", row.pk, "--reason", "gone")
    for told in (run("why", "proxy", row.pk), run(*close), run("drain", "proxy", row.pk, "--reason", "gone")):
        assert f"{row.pk} is locked by session {found.session.number} from 127.0.0.1:" in told.all
        assert f"end it with: {found.session.command}" in told.all
    with connection.cursor() as cursor:
        cursor.execute(found.session.command)
    eventually(lambda: run(*close).code == 0)
    assert Proxy.pool.acquire(wait=False)
    assert not Team.objects.exists()
