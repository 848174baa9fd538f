"""A time limit for a whole request: a socket's timeout begins anew with every byte that arrives."""

import contextlib
import os
import socket
import threading
from typing import Any, Self

from resourcepool.database.clock import monotonic


class Deadline:
    """Shuts down its connections when the time is over, whatever they are waiting for."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._ends_at = monotonic() + seconds
        self._lock = threading.Lock()
        self._copies: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    @property
    def left(self) -> float:
        """Seconds that are left; never quite 0, which a socket would take for "for ever"."""
        return max(0.001, self._ends_at - monotonic())

    def hold(self, sock: socket.socket) -> None:
        """Shut down this socket, too: through a copy, because TLS detaches the original."""
        with self._lock:
            self._copies.append(socket.socket(fileno=os.dup(sock.fileno())))
        if self.is_over:
            self._cut()

    def _cut(self) -> None:
        self.is_over = True
        with self._lock:
            for copy in self._copies:
                with contextlib.suppress(OSError):
                    copy.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._timer.cancel()
        with self._lock:
            for copy in self._copies:
                copy.close()
            self._copies.clear()
