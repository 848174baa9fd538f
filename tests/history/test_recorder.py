"""What happens is written down: completely, soon, and never in anybody's way."""

import threading
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DataError, OperationalError, connection, transaction

from resourcepool import clock, signals
from resourcepool.dialect import DbLater, read_clock
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.history import recorder as recording
from resourcepool.history import writing
from resourcepool.history.merging import Entry, merged
from resourcepool.history.recorder import Recorder, recorder, write
from resourcepool.leases import verbs
from resourcepool.leases.background import own_connections
from resourcepool.models import Event, Proxy
from resourcepool.signals import Fact, What
from tests.app.models import Device
from tests.app.rows import new, steal
from tests.committed import Statement
from tests.eventually import eventually
from tests.spawned import Spawner

CLOCKS_APART = timedelta(seconds=1)  # moments of a process and of the database are compared


def told(row: Any) -> list[str]:
    """Return what the history says of this row, oldest first, as soon as nothing waits to be written."""
    eventually(lambda: recorder.is_idle)
    return list(Event.objects.of(row).order_by("pk").values_list("what", flat=True))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "EVERY", 0.2)


@pytest.fixture
def proxy() -> Any:
    return new(Proxy)


class TestWhatIsWritten:
    def test_a_short_lease_is_one_event_that_says_from_when_until_when(self, proxy: Any) -> None:
        before = read_clock(connection)
        with Proxy.pool.lease(holder="crawler 7", ttl=15) as lease:
            pass
        assert told(proxy) == ["released"]
        event = Event.objects.get()
        assert event.is_whole
        assert (event.fence, event.holder, event.pool) == (lease.fence, "crawler 7", "resourcepool.proxy")
        assert (event.host, event.pid, event.ttl) == (writing._host, writing.os.getpid(), 15)
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
            assert (event.host, event.pid) == (writing._host, writing.os.getpid())
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

    def test_for_how_long_a_revoked_lease_was_held(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire()
        assert told(proxy) == ["acquired"]
        Event.objects.update(at=DbLater(-90))
        Proxy.objects.all().revoke("hangs", actor="alice")
        assert told(proxy) == ["acquired", "revoked"]
        event = Event.objects.get(what="revoked")
        assert (event.fence, event.actor) == (lease.fence, "alice")
        assert 89 < event.seconds < 150

    def test_also_if_it_began_a_moment_ago(self, proxy: Any) -> None:
        began = Fact(What.ACQUIRED, Proxy, "default", proxy.pk, 1, at=clock.monotonic() - 3)
        write(merged([began, Fact(What.REVOKED, Proxy, "default", proxy.pk, 1, at=began.at + 2)]))
        assert told(proxy) == ["acquired", "revoked"]
        assert Event.objects.get(what="revoked").seconds == pytest.approx(2)

    def test_a_revoked_lease_of_which_nothing_is_known(self, proxy: Any) -> None:
        write([Entry(Fact(What.REVOKED, Proxy, "default", proxy.pk, 7))])
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

    def test_the_moment_at_which_it_happened_not_at_which_it_was_written(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire()
        told(proxy)
        lease.release()
        told(proxy)
        first, last = Event.objects.of(proxy).order_by("pk")
        assert first.at <= last.at
        assert Event.objects.since(60).count() == 2

    def test_the_moment_on_a_machine_that_was_suspended_for_an_hour(
        self, proxy: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asleep = 3_600

        def counts_sleep(which: int) -> float:
            return time.monotonic() + (asleep if which == clock._CLOCK else 0)

        monkeypatch.setattr(
            clock, "time", SimpleNamespace(monotonic=time.monotonic, clock_gettime=counts_sleep)
        )
        write([Entry(Fact(What.REVOKED, Proxy, "default", proxy.pk, 1))])
        assert Event.objects.since(60).count() == 1

    def test_by_the_processes_in_which_it_happens_up_to_their_end(self, proxy: Any, spawn: Spawner) -> None:
        child = spawn(leave_while_holding)
        child.succeed()
        assert told(proxy) == ["released"]
        assert set(Event.objects.values_list("pid", flat=True)) == {child.pid}

    def test_nothing_that_was_rolled_back(self, proxy: Any) -> None:
        with pytest.raises(LookupError), transaction.atomic():
            Proxy.objects.take_out("maintenance")
            raise LookupError
        Proxy.objects.take_out("really")
        assert told(proxy) == ["taken_out"]
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


class TestTheWayItIsWritten:
    def test_many_in_one_statement_and_not_by_those_who_acquire(
        self, proxy: Any, statements: list[Statement], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "EVERY", 3.0)  # a busy machine takes a while for twenty
        for _ in range(20):
            Proxy.pool.acquire().release()
        assert told(proxy) == ["released"] * 20
        written = [one for one in statements if "INTO" in one.sql and "event" in one.sql]
        assert {one.thread for one in written} == {"resourcepool-history"}
        assert len(written) <= 3

    def test_through_an_outage(self, proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        failed, write = threading.Event(), recording.write
        monkeypatch.setattr(recording, "PAUSE_AFTER_FAILURE", 0.1)

        def gone(_: Any) -> None:
            failed.set()
            raise OperationalError("gone")

        monkeypatch.setattr(recording, "write", gone)
        Proxy.pool.acquire().release()
        assert failed.wait(10)
        monkeypatch.setattr(recording, "write", write)
        assert told(proxy) == ["released"]
        assert Event.objects.get().is_whole

    @pytest.fixture
    def stays(self, monkeypatch: pytest.MonkeyPatch) -> Recorder:
        """A recorder that writes when it is told to, and has room for three."""
        monkeypatch.setattr(recording, "MOST", 3)
        monkeypatch.setattr(recording, "MOST_BY_OPERATORS", 4)
        monkeypatch.setattr(Recorder, "_start", lambda _: None)
        return Recorder()

    def test_no_more_than_fits_and_the_rest_is_counted(self, stays: Recorder) -> None:
        for number in range(5):
            stays.note(Fact(What.ACQUIRED, Proxy, "default", number))
        assert (len(stays._waiting), stays.dropped) == (3, 2)
        for number in range(2):
            stays.note(Fact(What.REVOKED, Proxy, "default", number, actor="alice"))
        assert (len(stays._waiting), stays.dropped) == (4, 3), "for what an operator does there is more room"

    def test_what_is_being_written_takes_up_room_too(
        self, stays: Recorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Or an outage would let in as many again with each attempt."""

        def gone(_: Any) -> None:
            stays.note(Fact(What.ACQUIRED, Proxy, "default", 4))
            raise OperationalError("gone")

        monkeypatch.setattr(recording, "write", gone)
        for number in range(3):
            stays.note(Fact(What.ACQUIRED, Proxy, "default", number))
        with pytest.raises(OperationalError):
            stays.flush()
        assert (len(stays._waiting), stays.dropped) == (3, 1)

    def test_after_a_failure_what_is_written_is_not_written_again(
        self, stays: Recorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written, write = [], recording.write

        def fails_at_the_second(entries: Any) -> None:
            if written:
                raise OperationalError("gone")
            written.extend(entries)
            write(entries)

        monkeypatch.setattr(recording, "BATCH", 2)
        monkeypatch.setattr(recording, "write", fails_at_the_second)
        for number in range(3):
            stays.note(Fact(What.ACQUIRED, Proxy, "default", number))
        with pytest.raises(OperationalError):
            stays.flush()
        monkeypatch.setattr(recording, "write", write)
        stays.flush()
        assert list(Event.objects.order_by("pk").values_list("row", flat=True)) == ["0", "1", "2"]

    def test_after_a_failure_the_database_is_left_alone_for_a_while(
        self, stays: Recorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def gone(_: Any) -> None:
            raise OperationalError("gone")

        monkeypatch.setattr(recording, "write", gone)
        monkeypatch.setattr(recording, "EVERY", 0.0)
        stays.note(Fact(What.ACQUIRED, Proxy, "default", 1))
        with own_connections() as own:
            again_at = stays._turn(own)
        assert again_at > clock.monotonic() + recording.PAUSE_AFTER_FAILURE / 2
        stays.note(Fact(What.ACQUIRED, Proxy, "default", 2))
        assert stays._due_at == again_at

    def test_the_log_and_the_history_say_once_how_many_are_missing(
        self, stays: Recorder, caplog: pytest.LogCaptureFixture
    ) -> None:
        for number in range(5):
            stays.note(Fact(What.ACQUIRED, Proxy, "default", number))
        stays.flush()
        stays.flush()
        said = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
        assert [text.partition(":")[0] for text in said] == [
            "3 events wait to be written",
            "2 events were dropped; from now on they are written again",
        ]
        gap = Event.objects.get(pool="")
        assert gap.reason == "2 events of this process were not written down: too many waited"
        assert gap.pid == writing.os.getpid()
        assert stays.dropped == 0


def test_a_history_that_fails_is_nothing_to_whoever_acquires(
    proxy: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(fact: Fact) -> None:
        raise ArithmeticError("nobody thought of this one")

    monkeypatch.setattr(signals, "recorders", [broken])
    Proxy.pool.acquire().release()
    said = [text for text in caplog.messages if "is not recorded" in text]
    assert len(said) == 2


class TestWhatTheDatabaseCannotTake:
    def test_text_that_is_none_is_written_as_far_as_it_goes(self, proxy: Any) -> None:
        texts = ("1\udcff", 7, "h\udcfford", "a\0b", "al\udcffice")
        write([Entry(Fact(What.REVOKED, Proxy, "default", *texts))])
        event = Event.objects.get()
        assert (event.row, event.holder, event.reason, event.actor) == ("1?", "h?ord", "ab", "al?ice")

    def test_is_left_out_and_the_others_are_written(
        self, proxy: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        add = writing._add

        def picky(entries: Any, using: str) -> None:
            if any(entry.fact.holder == "hostile" for entry in entries):
                raise DataError("hostile, at position 7")
            add(entries, using)

        monkeypatch.setattr(writing, "_add", picky)
        for holder in ("first", "hostile", "last"):
            Proxy.pool.acquire(holder=holder).release()
        assert told(proxy) == ["released"] * 2
        said = [text for text in caplog.messages if "cannot be written, and is left out" in text]
        assert len(said) == 1
        assert "hostile" not in "".join(said)

    def test_is_not_one_that_only_cannot_be_written_now(
        self, proxy: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any) -> None:
            raise OperationalError("the disk is full")

        monkeypatch.setattr(writing, "_add", full)
        mine = Recorder()
        monkeypatch.setattr(mine, "_start", lambda: None)
        mine.note(Fact(What.ACQUIRED, Proxy, "default", proxy.pk, 1))
        with pytest.raises((OperationalError, DatabaseUnavailable)):  # PostgreSQL's driver gives no number
            mine.flush()
        assert len(mine._waiting) == 1

    def test_does_not_end_the_thread_that_writes(self, proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        failed, write = threading.Event(), recording.write
        monkeypatch.setattr(recording, "PAUSE_AFTER_FAILURE", 0.1)

        def broken(_: Any) -> None:
            failed.set()
            raise ArithmeticError("nobody thought of this one")

        monkeypatch.setattr(recording, "write", broken)
        Proxy.pool.acquire().release()
        assert failed.wait(10)
        monkeypatch.setattr(recording, "write", write)
        assert told(proxy) == ["released"], "and nothing more had to happen for it"


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


def test_what_a_test_has_told_is_not_written_into_the_real_database(
    proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(recorder, "_start", lambda: None)
    monkeypatch.setattr(recording, "_database", lambda: "test_pool")
    recorder.note(Fact(What.ACQUIRED, Proxy, "default", proxy.pk, 1))
    monkeypatch.setattr(recording, "_database", lambda: "pool")
    recorder.flush()
    assert recorder.is_idle
    assert told(proxy) == []
    recorder.note(Fact(What.ACQUIRED, Proxy, "default", proxy.pk, 2))
    recorder.flush()
    assert told(proxy) == ["acquired"]
