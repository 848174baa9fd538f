"""A history that cannot be written costs no lease, however short its ttl."""

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.background import background_thread
from resourcepool.history import recorder as recording
from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Proxy
from resourcepool.signals import EventKind, RowEvent
from tests.eventually import InBackground, eventually
from tests.history.recorded import told

TTL = 1.0  # seconds; a statement in the background waits for a lock as long as this, and is sent again

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def locked(other: BaseDatabaseWrapper) -> Iterator[None]:
    """The table of the history is locked by another session."""
    table = other.ops.quote_name(Event._meta.db_table)
    is_mysql = other.vendor == "mysql"
    with other.cursor() as cursor:
        if is_mysql:
            cursor.execute(f"LOCK TABLES {table} WRITE")
        else:
            cursor.execute("BEGIN")
            cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        cursor.execute("UNLOCK TABLES" if is_mysql else "ROLLBACK")


def survives(lease: Any, rounds: int = 4) -> bool:
    """Whether the lease is renewed for this many times its ttl."""
    until = lease._trust.granted_at + rounds * TTL
    eventually(lambda: lease._trust.sent_at > until or not lease.is_held)
    return bool(lease.is_held)


@pytest.mark.only("mysql", "postgresql")  # on SQLite a lock is one of the whole database
@pytest.mark.usefixtures("locked")
class TestALockedHistory:
    def test_loses_no_lease(self, proxy: Any, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            lease = Proxy.pool.acquire(ttl=TTL)
            assert survives(lease)
        assert "1 events could not be written yet" in caplog.text
        assert not recorder.is_idle

    def test_loses_no_lease_that_is_acquired_meanwhile(self, proxy: Any) -> None:
        recorder.note(RowEvent(EventKind.EXPIRED, Proxy, "default", 0))
        for _ in range(3):
            eventually(lambda: background_thread("default").is_lent)
            lease = Proxy.pool.acquire(ttl=TTL)
            assert survives(lease, rounds=2)
            lease.release()

    def test_loses_no_lease_when_there_is_much_to_write(self, proxy: Any) -> None:
        for number in range(3 * recording.BATCH):
            recorder.note(RowEvent(EventKind.EXPIRED, Proxy, "default", number))
        assert survives(Proxy.pool.acquire(ttl=TTL))


def test_a_thread_that_flushes_and_hangs_delays_no_renewal(proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, hangs, write = threading.Event(), threading.Event(), recording.write

    def hang(entries: Any) -> None:
        if not threading.current_thread().name.startswith("resourcepool-"):
            hangs.set()
            goes_on.wait(60)
        write(entries)

    monkeypatch.setattr(recording, "write", hang)
    recorder.note(RowEvent(EventKind.EXPIRED, Proxy, "default", proxy.pk))
    flushing = InBackground(recorder.flush)
    assert hangs.wait(60)
    lease = Proxy.pool.acquire(ttl=TTL)
    assert survives(lease)
    goes_on.set()
    flushing.result()
    lease.release()
    assert told(proxy) == ["expired", "released"]
