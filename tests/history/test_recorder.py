"""Events are recorded completely and soon, without delaying callers."""

import threading
from typing import Any

import pytest
from django.db import DataError, OperationalError, transaction

from resourcepool import clock, signals
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.history import recorder as recording, writer
from resourcepool.history.recorder import Recorder, write
from resourcepool.history.writer import Entry
from resourcepool.models import Event, Proxy
from resourcepool.signals import EventKind, RowEvent
from tests.committed import Statement
from tests.eventually import eventually
from tests.history.recorded import told

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing can be written; the names of the threads that try."""
    tries: list[str] = []

    def fail(_: Any) -> None:
        tries.append(threading.current_thread().name)
        raise OperationalError("gone")

    monkeypatch.setattr(recording, "write", fail)
    return tries


class TestTheWayItIsWritten:
    def test_many_in_one_statement_and_not_by_those_who_acquire(
        self, proxy: Any, statements: list[Statement], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "EVERY", 3.0)  # a busy machine takes a while for twenty
        for _ in range(20):
            Proxy.pool.acquire().release()
        eventually(lambda: recording.recorder.is_idle)
        assert told(proxy) == ["released"] * 20
        written = [one for one in statements if "INTO" in one.sql and "event" in one.sql]
        assert {one.thread for one in written} == {"resourcepool-background-default"}
        assert len(written) <= 3

    def test_by_a_release_on_its_own_session_if_they_are_due(
        self, proxy: Any, statements: list[Statement], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "EVERY", 0.0)
        monkeypatch.setattr(recording, "RELEASES_FIRST", 60.0)
        Proxy.pool.acquire().release()
        assert told(proxy) == ["released"]
        written = [one for one in statements if "INTO" in one.sql and "event" in one.sql]
        assert {one.thread for one in written} == {"MainThread"}

    def test_never_inside_a_transaction_of_the_caller(
        self, proxy: Any, statements: list[Statement], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "EVERY", 0.0)
        monkeypatch.setattr(recording, "RELEASES_FIRST", 60.0)
        held = Proxy.pool.acquire()
        with transaction.atomic():
            held.release()
            assert not [one for one in statements if "INTO" in one.sql and "event" in one.sql]

    def test_after_a_failure_no_release_tries_it_again(
        self, proxy: Any, gone: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A locked history table must not delay every release."""
        monkeypatch.setattr(recording, "EVERY", 0.0)
        monkeypatch.setattr(recording, "RELEASES_FIRST", 60.0)
        for _ in range(3):
            Proxy.pool.acquire().release()
        assert gone == ["MainThread"]
        assert "1 events could not be written yet" in caplog.text or "2 events could not be" in caplog.text

    def test_through_an_outage(self, proxy: Any, gone: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recording, "EVERY", 0.1)
        Proxy.pool.acquire().release()
        eventually(lambda: gone)
        monkeypatch.setattr(recording, "write", write)
        eventually(lambda: recording.recorder.is_idle)
        assert told(proxy) == ["released"]
        assert Event.objects.get().is_whole

    @pytest.fixture
    def stays(self, monkeypatch: pytest.MonkeyPatch) -> Recorder:
        """A recorder that writes when it is told to, and has room for three."""
        monkeypatch.setattr(recording, "MAX_WAITING", 3)
        monkeypatch.setattr(recording, "MAX_WAITING_OPERATOR", 4)
        monkeypatch.setattr(Recorder, "_start", lambda _: None)
        return Recorder()

    def test_no_more_than_fits_and_the_rest_is_counted(self, stays: Recorder) -> None:
        for number in range(5):
            stays.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", number))
        assert (len(stays._waiting), stays.dropped) == (3, 2)
        for number in range(2):
            stays.note(RowEvent(EventKind.REVOKED, Proxy, "default", number, actor="alice"))
        assert (len(stays._waiting), stays.dropped) == (4, 3), "for what an operator does there is more room"

    def test_what_is_being_written_takes_up_room_too(
        self, stays: Recorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Or an outage would let in as many again with each attempt."""

        def gone(_: Any) -> None:
            stays.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", 4))
            raise OperationalError("gone")

        monkeypatch.setattr(recording, "write", gone)
        for number in range(3):
            stays.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", number))
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
            stays.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", number))
        with pytest.raises(OperationalError):
            stays.flush()
        monkeypatch.setattr(recording, "write", write)
        stays.flush()
        assert list(Event.objects.order_by("pk").values_list("row", flat=True)) == ["0", "1", "2"]

    def test_after_a_failure_the_database_is_left_alone_for_a_while(
        self, stays: Recorder, gone: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "BATCH", 1)
        stays.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", 1))
        again_at = stays._turn()
        assert again_at > clock.monotonic() + recording.EVERY / 2
        stays.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", 2))
        assert stays._due_at + recording.RELEASES_FIRST == again_at

    def test_the_log_and_the_history_say_once_how_many_are_missing(
        self, stays: Recorder, caplog: pytest.LogCaptureFixture
    ) -> None:
        for number in range(5):
            stays.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", number))
        stays.flush()
        stays.flush()
        said = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
        assert [text.partition(":")[0] for text in said] == [
            "3 events are waiting to be written",
            "2 events were dropped; new events are recorded again",
        ]
        gap = Event.objects.get(pool="")
        assert gap.reason == "2 events of this process were dropped: the write buffer was full"
        assert gap.pid == writer.os.getpid()
        assert stays.dropped == 0


def test_a_history_that_fails_is_nothing_to_whoever_acquires(
    proxy: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: RowEvent) -> None:
        raise ArithmeticError("nobody thought of this one")

    monkeypatch.setattr(signals, "recorders", [broken])
    Proxy.pool.acquire().release()
    said = [text for text in caplog.messages if "was not recorded" in text]
    assert len(said) == 2


class TestWhatTheDatabaseCannotTake:
    def test_text_that_is_none_is_written_as_far_as_it_goes(self, proxy: Any) -> None:
        texts = ("1\udcff", 7, "h\udcfford", "a\0b", "al\udcffice")
        write([Entry(RowEvent(EventKind.REVOKED, Proxy, "default", *texts))])
        event = Event.objects.get()
        assert (event.row, event.holder, event.reason, event.actor) == ("1?", "h?ord", "ab", "al?ice")

    def test_is_left_out_and_the_others_are_written(
        self, proxy: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        add = writer._add

        def picky(entries: Any, using: str) -> None:
            if any(entry.event.holder == "hostile" for entry in entries):
                raise DataError("hostile, at position 7")
            add(entries, using)

        monkeypatch.setattr(writer, "_add", picky)
        for holder in ("first", "hostile", "last"):
            Proxy.pool.acquire(holder=holder).release()
        assert told(proxy) == ["released"] * 2
        said = [text for text in caplog.messages if "cannot be stored and is skipped" in text]
        assert len(said) == 1
        assert "hostile" not in "".join(said)

    def test_is_not_one_that_only_cannot_be_written_now(
        self, proxy: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any) -> None:
            raise OperationalError("the disk is full")

        monkeypatch.setattr(writer, "_add", full)
        mine = Recorder()
        monkeypatch.setattr(mine, "_start", lambda: None)
        mine.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", proxy.pk, 1))
        with pytest.raises((OperationalError, DatabaseUnavailable)):  # PostgreSQL's driver gives no number
            mine.flush()
        assert len(mine._waiting) == 1

    def test_does_not_end_the_thread_that_writes(self, proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        failed, write = threading.Event(), recording.write
        monkeypatch.setattr(recording, "EVERY", 0.1)

        def broken(_: Any) -> None:
            failed.set()
            raise ArithmeticError("nobody thought of this one")

        monkeypatch.setattr(recording, "write", broken)
        Proxy.pool.acquire().release()
        assert failed.wait(60)
        monkeypatch.setattr(recording, "write", write)
        assert told(proxy) == ["released"], "and nothing more had to happen for it"


def test_what_a_test_has_told_is_not_written_into_the_real_database(
    proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(recorder, "_start", lambda: None)
    monkeypatch.setattr(recording, "_database", lambda: "test_pool")
    recorder.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", proxy.pk, 1))
    monkeypatch.setattr(recording, "_database", lambda: "pool")
    recorder.flush()
    assert recorder.is_idle
    assert told(proxy) == []
    recorder.note(RowEvent(EventKind.ACQUIRED, Proxy, "default", proxy.pk, 2))
    recorder.flush()
    assert told(proxy) == ["acquired"]
