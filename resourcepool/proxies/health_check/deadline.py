"""A time limit for a whole request; the timeout of a socket restarts with each byte received."""

import contextlib
import os
import socket
import threading
from typing import Any, Self

from resourcepool.clock import monotonic


class Deadline:
    """Shuts down its connections at the deadline."""

    def __init__(self, seconds: float) -> None:
        self.is_exceeded = False
        self._ends_at = monotonic() + seconds
        self._lock = threading.Lock()
        self._copies: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._shutdown)
        self._timer.daemon = True

    @property
    def left(self) -> float:
        """The remaining seconds; never 0, which means no timeout to a socket."""
        return max(0.001, self._ends_at - monotonic())

    def hold(self, sock: socket.socket) -> None:
        """Add a socket to shut down: through a copy, because TLS detaches the original."""
        with self._lock:
            self._copies.append(socket.socket(fileno=os.dup(sock.fileno())))
        if self.is_exceeded:
            self._shutdown()

    def _shutdown(self) -> None:
        self.is_exceeded = True
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
