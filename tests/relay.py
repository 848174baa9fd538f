"""Forwards TCP connections to a database server in one thread, and fails on command."""

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

PATIENCE = 0.05  # seconds until the next order to the relay is seen
CHUNK = 1 << 16


@dataclass(frozen=True)
class Trick:
    """What is to happen to the next statement that contains all of these words (in any case, quotes left out).

    Attributes:
        words: what to look for; nothing: any statement.
        hold: seconds for which the statement is kept from the server; None: the server gets it at once and
            answers, but the answer is thrown away and both ends are closed. That is what a client sees when a
            server or a network fails at the worst moment: nobody knows whether the statement took effect.
        is_lasting: a statement that is held arrives even if its sender has gone meanwhile.
        then: called when it has happened, before the client can notice.
    """

    words: str = ""
    hold: float | None = None
    is_lasting: bool = True
    then: Callable[[], object] = lambda: None

    def fits(self, data: bytes) -> bool:
        said = data.upper().replace(b"`", b"").replace(b'"', b"")
        return self.words.upper().encode() in said


@dataclass(eq=False, slots=True)
class _Pair:
    client: socket.socket
    server: socket.socket
    held: list[bytes] = field(default_factory=list)
    free_at: float = 0.0
    is_lasting: bool = True
    is_orphan: bool = False  # the client has gone while its statement was on the way
    doom: Trick | None = None


class Relay:
    """Forwards what comes to ``port`` of this host to the server, and plays tricks on the way."""

    def __init__(self, host: str, port: int, own_port: int = 0) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", own_port), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._listener, selectors.EVENT_READ, None)
        self._pairs: dict[_Pair, None] = {}
        self._holding: dict[_Pair, None] = {}
        self._tricks: list[Trick] = []
        self._is_open = True

    def expect(self, trick: Trick) -> None:
        """Play ``trick`` on one statement, as soon as a fitting one comes."""
        self._tricks.append(trick)

    def cut(self, choose: Callable[[int], int]) -> bool:
        """Close the connection that ``choose`` picks of so many; False when there is none. In its own thread only."""
        pairs = list(self._pairs)
        if pairs:
            self._close(pairs[choose(len(pairs))])
        return bool(pairs)

    def watch(self, file: int, react: Callable[[], object]) -> None:
        """Call ``react`` whenever there is something to read from the descriptor ``file``."""
        self._ready.register(file, selectors.EVENT_READ, react)

    def serve(self) -> None:
        """Forward until closed."""
        while self._is_open:
            for key, _ in self._ready.select(PATIENCE if not self._holding else PATIENCE / 5):
                if key.data is None:
                    self._accept()
                elif callable(key.data):
                    key.data()
                elif key.data in self._pairs:
                    self._forward(key.data, from_client=key.fileobj is key.data.client)
            self._let_go()
        for pair in list(self._pairs):
            self._close(pair)
        self._listener.close()
        self._ready.close()

    def close(self) -> None:
        self._is_open = False

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._server, timeout=1)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        pair = _Pair(client, server)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._ready.register(end, selectors.EVENT_READ, pair)
        self._pairs[pair] = None

    def _forward(self, pair: _Pair, *, from_client: bool) -> None:
        try:
            data = (pair.client if from_client else pair.server).recv(CHUNK)
            if not data:
                self._hung_up(pair, by_client=from_client)
            elif from_client:
                self._send(pair, data)
            elif pair.doom:
                pair.doom.then()
                self._close(pair)
            else:
                pair.client.sendall(data)
        except OSError:
            self._close(pair)

    def _send(self, pair: _Pair, data: bytes) -> None:
        if pair.held:
            pair.held.append(data)
            return
        trick = next((trick for trick in self._tricks if trick.fits(data)), None) if self._tricks else None
        if trick is None:
            pair.server.sendall(data)
            return
        self._tricks.remove(trick)
        if trick.hold is None:
            pair.doom = trick
            pair.server.sendall(data)
        else:
            trick.then()
            pair.held.append(data)
            pair.is_lasting = trick.is_lasting
            pair.free_at = time.monotonic() + trick.hold
            self._holding[pair] = None

    def _hung_up(self, pair: _Pair, *, by_client: bool) -> None:
        """What a client sent before it went is still on its way, as it is in a network."""
        if by_client and pair.held and pair.is_lasting:
            pair.is_orphan = True
            self._ready.unregister(pair.client)
            pair.client.close()
        else:
            self._close(pair)

    def _let_go(self) -> None:
        now = time.monotonic()
        for pair in [pair for pair in self._holding if pair.free_at <= now]:
            self._holding.pop(pair, None)
            with contextlib.suppress(OSError):
                pair.server.sendall(b"".join(pair.held))
            pair.held.clear()
            if pair.is_orphan:
                self._close(pair)

    def _close(self, pair: _Pair) -> None:
        self._pairs.pop(pair, None)
        self._holding.pop(pair, None)
        for end in (pair.client, pair.server):
            with contextlib.suppress(KeyError, ValueError):
                self._ready.unregister(end)
            end.close()
