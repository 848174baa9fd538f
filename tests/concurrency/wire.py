"""A wire between this process and the database server that can be cut just after the server has done its part."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from django.db import connection as default
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.eventually import closing


class Wire:
    """Forwards TCP connections to the server, until it sees the words it was told to look for.

    Then the statement still reaches the server, which answers; the answer is thrown away and both ends are closed.
    That is what a client sees when a server or a network fails at the worst moment.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        self._words: bytes | None = None
        self._meanwhile: Callable[[], object] | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, words: str, *, meanwhile: Callable[[], object] | None = None) -> None:
        """Lose the answer to the next statement that contains these words (and only to that one).

        Args:
            meanwhile: done before anybody can notice, on a database connection of its own.
        """
        self._words, self._meanwhile = words.encode(), meanwhile

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        doomed = False
        with client, server, selectors.DefaultSelector() as ready, contextlib.suppress(OSError):
            ready.register(client, selectors.EVENT_READ)
            ready.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                    if not data:
                        return
                    if key.fileobj is server:
                        if doomed:
                            self.cuts += 1
                            if self._meanwhile is not None:
                                closing(self._meanwhile)
                            return
                        client.sendall(data)
                    else:
                        if self._words is not None and self._words in data:
                            self._words, doomed = None, True
                        server.sendall(data)


@contextlib.contextmanager
def wired() -> Iterator[tuple[Wire, BaseDatabaseWrapper]]:
    """Let this thread talk to the database through a wire; yields it and the connection."""
    settings = default.settings_dict
    wire = Wire(settings["HOST"], int(settings["PORT"]))
    own: Any = connections.create_connection("default")
    own.settings_dict = {**settings, "HOST": "127.0.0.1", "PORT": wire.port}
    before = connections["default"]
    connections["default"] = own
    try:
        yield wire, own
    finally:
        own.close()
        connections["default"] = before
        wire.close()


class Interference:
    """Raises an error instead of a statement, or after it, as often as it was told to; see ``execute_wrapper``."""

    def __init__(self) -> None:
        self.raised = 0
        self._words = ""
        self._error: Callable[[], Exception] | None = None
        self._left = 0
        self._after = False

    def expect(
        self, words: str, error: Callable[[], Exception], *, times: int = 1, after: bool = False
    ) -> None:
        """Fail the next ``times`` statements that contain ``words``; with ``after``, once they have taken effect."""
        self._words, self._error, self._left, self._after = words, error, times, after

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._error is None or not self._left or self._words not in sql:
            return execute(sql, params, many, context)
        self._left -= 1
        self.raised += 1
        if self._after:
            execute(sql, params, many, context)
        raise self._error()
