"""A TCP relay between a test's child process and the database server, which can fail in the ways that networks do."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

CHUNK = 65_536


class Relay:
    """Forwards connections to the server of ``url``; its own address is in ``self.url``.

    ``cut``: connections break, and new ones are refused. ``hang``: nothing goes through any more, and nobody is
    told. ``mend``: new connections work again.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        login = parts.netloc.rpartition("@")[0]
        netloc = f"{login}@127.0.0.1:{self.port}" if login else f"127.0.0.1:{self.port}"
        self.url = parts._replace(netloc=netloc).geturl()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_cut = self._ends = False
        self._flows = threading.Event()
        self._flows.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._is_cut = True
        self._break_all()

    def hang(self) -> None:
        self._flows.clear()

    def mend(self) -> None:
        self._is_cut = False
        if not self._flows.is_set():
            self._break_all()  # what hung does not come to life again
            self._flows.set()

    def close(self) -> None:
        self._ends = True
        self._flows.set()
        self._listener.close()
        self._break_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_cut or self._ends:
                client.close()
                continue
            server = socket.create_connection(self._server)
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                self._flows.wait()
                target.sendall(data)
        self._break({source, target})

    def _break_all(self) -> None:
        with self._lock:
            every = set(self._open)
        self._break(every)

    def _break(self, sockets: set[socket.socket]) -> None:
        with self._lock:
            ours = sockets & self._open
            self._open -= ours
        for one in ours:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextlib.contextmanager
def relay(url: str) -> Iterator[Relay]:
    between = Relay(url)
    try:
        yield between
    finally:
        between.close()
