"""The relay: it injects exactly the requested faults, once."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.eventually import eventually
from tests.relay import Relay, Trick
from tests.servers.server import free_port


class Echo:
    """A server that answers with what it was sent, and remembers it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.closed = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while data := client.recv(1000):
                self.heard.append(data)
                client.sendall(data)
            self.closed += 1


@pytest.fixture
def server() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def relay(server: Echo) -> Iterator[Relay]:
    with serving(Relay("127.0.0.1", server.port)) as relay:
        yield relay


@pytest.fixture
def nobody() -> Iterator[Relay]:
    """A relay to a server that is not there."""
    with serving(Relay("127.0.0.1", free_port())) as relay:
        yield relay


@contextlib.contextmanager
def serving(relay: Relay) -> Iterator[Relay]:
    thread = threading.Thread(target=relay.serve)
    thread.start()
    yield relay
    relay.close()
    thread.join(5)


def ask(client: socket.socket, words: bytes) -> bytes:
    client.sendall(words)
    return answer(client)


def answer(client: socket.socket) -> bytes:
    """Return what comes next; nothing when the connection is closed."""
    try:
        return client.recv(1000)
    except ConnectionResetError:
        return b""


def dial(relay: Relay) -> socket.socket:
    return socket.create_connection(("127.0.0.1", relay.port), timeout=5)


def test_it_forwards(relay: Relay) -> None:
    with dial(relay) as client:
        assert ask(client, b"one") == b"one"
        assert ask(client, b"two") == b"two"


def test_a_reply_is_lost_after_the_server_has_heard(relay: Relay, server: Echo) -> None:
    told = threading.Event()
    relay.expect(Trick("set fence", then=told.set))
    with dial(relay) as client, dial(relay) as other:
        assert ask(other, b"SELECT") == b"SELECT"
        assert ask(client, b"UPDATE `x` SET `fence`") == b""
        assert told.is_set()
        assert ask(other, b"UPDATE x SET fence") == b"UPDATE x SET fence"
    assert b"UPDATE `x` SET `fence`" in server.heard


def test_a_statement_is_held_up_and_arrives(relay: Relay, server: Echo) -> None:
    relay.expect(Trick("late", hold=0.3))
    with dial(relay) as client, dial(relay) as other:
        began = time.monotonic()
        client.sendall(b"late")
        assert ask(other, b"late") == b"late"
        assert server.heard == [b"late"]
        assert answer(client) == b"late"
        assert time.monotonic() - began >= 0.3


def test_what_was_sent_arrives_even_if_its_sender_has_gone(relay: Relay, server: Echo) -> None:
    relay.expect(Trick("late", hold=0.2))
    with dial(relay) as client:
        client.sendall(b"late")
    eventually(lambda: server.heard == [b"late"])


def test_what_must_not_outlive_its_sender_goes_with_it(relay: Relay, server: Echo) -> None:
    relay.expect(Trick("late", hold=600, is_lasting=False))
    client = dial(relay)
    client.sendall(b"late")
    with dial(relay) as other:
        assert ask(other, b"meanwhile") == b"meanwhile"
        client.close()
        eventually(lambda: server.closed == 1)
    assert server.heard == [b"meanwhile"]


def test_a_server_that_is_gone_means_a_closed_connection(nobody: Relay) -> None:
    with dial(nobody) as client:
        assert answer(client) == b""
