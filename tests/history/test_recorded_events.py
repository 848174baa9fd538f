"""Events are recorded completely: each lease, its end, and the actor."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool import clock
from resourcepool.db.dialect import DbLater, read_clock
from resourcepool.history import writer
from resourcepool.history.recorder import write
from resourcepool.history.writer import Entry, merge_events
from resourcepool.leases import verbs
from resourcepool.models import Event, Proxy
from resourcepool.signals import EventKind, RowEvent
from tests.app.models import Device
from tests.app.rows import new, steal
from tests.history.recorded import told
from tests.spawned import Spawner

pytestmark = pytest.mark.usefixtures("quick")


CLOCKS_APART = timedelta(seconds=1)  # moments of a process and of the database are compared


class TestWhatIsWritten:
    def test_a_short_lease_is_one_event_that_says_from_when_until_when(self, proxy: Any) -> None:
        before = read_clock(connection)
        with Proxy.pool.lease(holder="crawler 7", ttl=15) as lease:
            pass
        assert told(proxy) == ["released"]
        event = Event.objects.get()
        assert event.is_whole
        assert (event.fence, event.holder, event.pool) == (lease.fence, "crawler 7", "resourcepool.proxy")
        assert (event.host, event.pid, event.ttl) == (writer._host, writer.os.getpid(), 15)
        assert 0 < event.seconds < 30
        assert before - CLOCKS_APART < event.began_at < event.at < read_clock(connection) + CLOCKS_APART

    def test_a_lease_that_still_runs_when_it_is_written_is_announced_and_its_end_told(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire(holder="crawler 7")
        assert told(proxy) == ["acquired"]
        lease.release()
        assert told(proxy) == ["acquired", "released"]
        for event in Event.objects.of(proxy):
            assert not event.is_whole
            assert (event.fence, event.holder) == (lease.fence, "crawler 7")
            assert (event.host, event.pid) == (writer._host, writer.os.getpid())
        assert 0 < Event.objects.get(what="released").seconds < 30

    def test_how_long_a_lease_is_good_after_each_renewal_unless_max_hold_cuts_it_short(self) -> None:
        plain, cut = new(Proxy), new(Device)
        leases = [Proxy.pool.acquire(ttl=15), Device.pool.acquire(ttl=15, max_hold=40)]
        assert all(leases)
        for row, ttl in ((plain, 15), (cut, None)):
            assert told(row) == ["acquired"]
            assert Event.objects.of(row).get().ttl == ttl

    def test_a_loss_with_its_reason(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire()
        steal(proxy)
        with pytest.raises(Exception, match="lost"):
            lease.renew()
        assert told(proxy) == ["acquired", "lost"]
        assert Event.objects.get(what="lost").reason == verbs.TAKEN

    def test_for_how_long_a_freed_lease_was_held(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire()
        assert told(proxy) == ["acquired"]
        Event.objects.update(at=DbLater(-90))
        Proxy.objects.all().revoke("hangs", actor="alice")
        assert told(proxy) == ["acquired", "revoked"]
        event = Event.objects.get(what="revoked")
        assert (event.fence, event.actor) == (lease.fence, "alice")
        assert 89 < event.seconds < 150

    def test_also_if_it_began_a_moment_ago(self, proxy: Any) -> None:
        began = RowEvent(EventKind.ACQUIRED, Proxy, "default", proxy.pk, 1, at=clock.monotonic() - 3)
        write(
            merge_events([began, RowEvent(EventKind.REVOKED, Proxy, "default", proxy.pk, 1, at=began.at + 2)])
        )
        assert told(proxy) == ["acquired", "revoked"]
        assert Event.objects.get(what="revoked").seconds == pytest.approx(2)

    def test_a_freed_lease_of_which_nothing_is_known(self, proxy: Any) -> None:
        write([Entry(RowEvent(EventKind.REVOKED, Proxy, "default", proxy.pk, 7))])
        assert Event.objects.get(what="revoked").seconds is None

    def test_a_fix_of_the_bad_one_and_the_lease_of_the_next(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire()
        other = new(Proxy)
        lease.fix("banned by example.com")
        assert told(proxy) == ["fixed"]
        assert told(other) == ["acquired"]
        event = Event.objects.get(what="fixed")
        assert (event.reason, event.is_whole) == ("banned by example.com", True)
        lease.release()

    def test_a_lease_that_changes_hands(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire()
        Proxy.pool.adopt(proxy.pk, lease.hand_over("the next one")).release()
        assert told(proxy) == ["handed_over", "released"]
        assert Event.objects.acquisitions().count() == 2

    def test_the_moment_by_the_clock_that_counts_the_sleep_of_a_suspended_machine(self) -> None:
        told_by = RowEvent.__dataclass_fields__["at"].default_factory
        assert told_by is writer.monotonic is clock.monotonic
        if hasattr(time, "CLOCK_BOOTTIME"):
            before = time.clock_gettime(time.CLOCK_BOOTTIME)
            assert before <= clock.monotonic() <= time.clock_gettime(time.CLOCK_BOOTTIME)

    def test_by_the_processes_in_which_it_happens_up_to_their_end(self, proxy: Any, spawn: Spawner) -> None:
        child = spawn(leave_while_holding)
        child.succeed()
        assert told(proxy) == ["released"]
        assert set(Event.objects.values_list("pid", flat=True)) == {child.pid}

    def test_nothing_that_was_rolled_back(self, proxy: Any) -> None:
        with pytest.raises(LookupError), transaction.atomic():
            Proxy.objects.drain("maintenance")
            raise LookupError
        Proxy.objects.drain("really")
        assert told(proxy) == ["drained"]
        assert Event.objects.get().reason == "really"

    def test_nothing_of_a_pool_that_keeps_no_history(self, settings: Any) -> None:
        pools = {"testapp.Device": {"history": False}}
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "POOLS": pools}
        device = new(Device)
        Device.pool.acquire().release()
        assert told(device) == []


kept: list[Any] = []


def leave_while_holding() -> None:
    """Acquire, and end without releasing."""
    from django.conf import settings

    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    kept.append(Proxy.pool.acquire())


def test_a_process_of_the_version_before_goes_on_writing(proxy: Any) -> None:
    """It knows nothing of the newest column, so the database has to fill that in."""
    values = {"what": "released", "pool": "resourcepool.proxy", "row": "1", "fence": 1, "pid": 1}
    values |= dict.fromkeys(("holder", "actor", "reason", "host"), "")
    names = ", ".join(connection.ops.quote_name(name) for name in values)
    marks = ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:
        insert = f"INSERT INTO {Event._meta.db_table} (at, {names}) VALUES (CURRENT_TIMESTAMP, {marks})"
        cursor.execute(insert, list(values.values()))
    assert not Event.objects.get().is_whole
