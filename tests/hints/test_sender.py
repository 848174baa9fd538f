"""The sender does not affect the releasing thread."""

import logging
import math
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection, transaction

from resourcepool import hints
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.hints import after_commit, choice
from resourcepool.hints.threads import LIMIT_INTERVAL, Sender
from resourcepool.models import Proxy
from resourcepool.signals import EventKind, RowEvent, emit_to_listeners
from tests.committed import Clock
from tests.hints.conftest import choose
from tests.hints.receiver import LONG
from tests.hints.test_contract import warnings


class Scripted:
    """A choice and a service in one: records hints with their threads, can wait at a gate, and can fail."""

    redacted = "scripted"

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.arrived = threading.Event()
        self.is_away = False
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self.closed = 0
        self.most = math.inf

    def open(self) -> "Scripted":
        return self

    def send(self, addresses: Sequence[str]) -> None:
        self.arrived.set()
        self.threads.add(threading.current_thread().name)
        assert self.gate.wait(LONG)
        if self.is_away:
            raise ConnectionError
        self.batches.append(list(addresses))

    def max_per_second(self) -> float:
        return self.most

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    service = Scripted()
    monkeypatch.setattr(choice, "configured", lambda: service)
    yield service
    service.gate.set()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_service_that_hangs_keeps_only_the_senders_own_thread(sender: Sender, scripted: Scripted) -> None:
    sender.send("a")
    assert scripted.arrived.wait(LONG)
    for address in "bcb":
        sender.send(address)  # returns, although nothing gets through
    assert scripted.batches == []
    scripted.gate.set()
    sender.flush(LONG)
    assert scripted.batches == [["a"], ["b", "c"]]  # each once
    assert scripted.threads == {"resourcepool-hint-sender"}


def test_the_number_of_waiting_hints_is_limited(
    sender: Sender, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resourcepool.hints.threads.MAX_WAITING_HINTS", 3)
    sender.send("first")
    assert scripted.arrived.wait(LONG)
    for number in range(100):
        sender.send(str(number))
    scripted.gate.set()
    sender.flush(LONG)
    assert scripted.batches == [["first"], ["0", "1", "2"]]


def test_hints_above_the_limit_are_dropped_and_the_limit_is_read_again_later(
    sender: Sender, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("resourcepool.hints.threads.monotonic", lambda: now)
    scripted.gate.set()
    scripted.most = 50.0
    for address, per_second in (
        ("dropped", 60.0),
        ("dropped, too", 60.0),
        ("slow enough", 40.0),
        ("unknown", 0.0),
    ):
        sender.send(address, per_second)
        sender.flush(LONG)
    assert scripted.batches == [["slow enough"], ["unknown"]]
    now += LIMIT_INTERVAL
    scripted.most = 70.0
    for address in ("worth it by now", "as before"):
        sender.send(address, 60.0)
        sender.flush(LONG)
    assert scripted.batches[2:] == [["worth it by now"], ["as before"]]


def test_a_hint_below_the_limit_is_sent_despite_others_above_it(sender: Sender, scripted: Scripted) -> None:
    scripted.most = 50.0
    sender.send("blocks")
    assert scripted.arrived.wait(LONG)
    sender.send("a", 40.0)
    sender._max_per_second = math.inf  # before the first read of the limit
    sender.send("a", 60.0)
    sender._max_per_second = scripted.most
    scripted.gate.set()
    sender.flush(LONG)
    assert scripted.batches == [["blocks"], ["a"]]


def test_during_an_outage_hints_are_dropped_with_one_log_line(
    sender: Sender, scripted: Scripted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    now = 100.0
    monkeypatch.setattr("resourcepool.hints.threads.monotonic", lambda: now)
    scripted.gate.set()
    scripted.is_away = True
    for _ in range(8):
        sender.send("a")
        sender.flush(LONG)
        assert now < sender._paused_until <= now + 30
        sender.send("dropped in the pause")
        sender.flush(LONG)
        now += 30
    assert now - 30 + 15 <= sender._paused_until  # by now it pauses for 15 to 30 s
    scripted.is_away = False
    sender.send("b")
    sender.flush(LONG)
    assert scripted.batches == [["b"]]
    assert caplog.messages == [
        "hints cannot be sent by scripted: ConnectionError; falling back to polling",
        "hints can be sent by scripted again",
    ]


def test_an_idle_session_is_closed(sender: Sender, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = threading.Event()
    monkeypatch.setattr("resourcepool.hints.threads.IDLE", 0.01)
    monkeypatch.setattr(scripted, "close", closed.set)
    scripted.gate.set()
    sender.send("a")
    assert closed.wait(LONG)
    sender.send("b")
    sender.flush(LONG)
    assert scripted.batches == [["a"], ["b"]]


@pytest.mark.parametrize("url", ["redis://joe:hush@127.0.0.1:{}/0", "amqp://joe:hush@127.0.0.1:{}//"])
def test_with_a_hanging_server_callers_use_no_socket_and_no_secret_is_logged(
    url: str,
    sender: Sender,
    silent_port: int,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.NOTSET)
    connecting: set[str] = set()
    for name in ("connect", "send", "sendall", "recv", "recv_into"):
        monkeypatch.setattr(socket, "socket", noting(socket.socket, name, connecting))
    monkeypatch.setattr(hints._own, "sender", sender)
    choose(settings, url.format(silent_port))
    hints.send(7)
    hints.flush(LONG)
    assert connecting == {"resourcepool-hint-sender"}
    assert len(warnings(caplog)) == 1
    for record in caplog.records:
        assert "hush" not in f"{record.getMessage()} {record.args} {record.exc_text}"


def noting(kind: type[socket.socket], name: str, threads: set[str]) -> type[socket.socket]:
    """Return a socket class that records the threads that call its method ``name``."""

    def note(self: socket.socket, *args: Any, **options: Any) -> Any:
        threads.add(threading.current_thread().name)
        return getattr(super(noted, self), name)(*args, **options)

    noted = type("Noted", (kind,), {name: note})
    return noted


@pytest.mark.parametrize("wrong", [3, "nonsense", "redis://host:port", "postgresql"])
def test_sending_never_raises_whatever_the_settings_are(wrong: Any, settings: Any) -> None:
    choose(settings, wrong)
    hints.send(7)
    hints.flush(LONG)
    settings.RESOURCEPOOL = 7
    hints.send(7)


def test_the_process_exit_waits_once_for_a_hanging_service(
    monkeypatch: pytest.MonkeyPatch, process_clock: Clock
) -> None:
    """Flushing happens several times: before and after the release of leases, and again in multiprocessing children."""
    waited: list[float] = []

    def hangs(self: Sender, seconds: float) -> None:
        waited.append(seconds)
        process_clock.advance(seconds)

    monkeypatch.setattr(hints, "monotonic", process_clock)
    monkeypatch.setattr(hints, "_own", hints._Process())
    monkeypatch.setattr(Sender, "flush", hangs)
    for _ in range(3):
        hints.flush_at_exit()
    assert waited == [hints.EXIT_TIMEOUT, 0.0, 0.0]


class OutOfTime(Exception):
    """Raised by a project's SIGALRM handler."""


def interrupted(*_: object) -> None:
    raise OutOfTime


def test_an_exception_of_a_signal_handler_while_sending_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(OutOfTime), transaction.atomic():
        after_commit("default", interrupted)
    monkeypatch.setattr("resourcepool.signals._send", interrupted)
    row = Proxy.objects.create(host="198.51.100.7", port=8080)
    proxy_freed = RowEvent(EventKind.REVOKED, Proxy, "default", row.pk, 1)
    with pytest.raises(OutOfTime), transaction.atomic():
        emit_to_listeners(proxy_freed, False, connection)
    assert Proxy.objects.exists(), "what was committed stays"


@pytest.mark.parametrize(
    "error", [OperationalError("gone"), InterfaceError("closed"), DatabaseUnavailable("away")]
)
def test_an_error_while_sending_hints_is_not_an_error_of_the_commit(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error

    with transaction.atomic():
        after_commit("default", fail)
    assert f"hints were not sent: {error}" in caplog.messages
