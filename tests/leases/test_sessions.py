"""A process keeps two sessions with the database at most: its own, and one in the background."""

import signal

import pytest
from django.conf import settings
from django.db import connection

from resourcepool.db import background
from resourcepool.history import recorder as recording
from resourcepool.history.recorder import recorder
from resourcepool.locks import Channel
from resourcepool.models import Proxy
from tests.app.rows import new
from tests.concurrency.stoppable_server import GO, say
from tests.eventually import eventually
from tests.spawned import Spawner
from tests.waiting.test_sessions import COUNT, asked

pytestmark = pytest.mark.only("mysql", "postgresql")


def sessions() -> int:
    return asked(COUNT[connection.vendor])


def work() -> None:
    """Hold a lease, record its history and wait for a message; then end all of it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, GO)
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    recording.EVERY, background.IDLE = 0.05, 0.05
    lease = Proxy.pool.acquire(ttl=0.5)
    eventually(lambda: lease._trust.sent_at > lease._trust.granted_at and recorder.is_idle)
    Channel("c").subscribe().get(timeout=1)
    say("works")
    signal.sigwait(GO)
    lease.release()
    eventually(lambda: recorder.is_idle)
    say("is idle")
    signal.sigwait(GO)


def test_a_process_that_holds_a_lease_and_records_has_two_and_an_idle_one_has_its_own(spawn: Spawner) -> None:
    new(Proxy)
    before = sessions()  # of earlier tests, too, until they have been idle
    child = spawn(work)
    child.line("works")
    assert sessions() <= before + 2
    child.send(signal.SIGUSR2)
    child.line("is idle")
    eventually(lambda: sessions() <= before + 1)
    child.send(signal.SIGUSR2)
    child.succeed()
