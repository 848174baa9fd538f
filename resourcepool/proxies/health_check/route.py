"""The connection to a proxy. Its name is resolved and checked once; connections go only to these addresses."""

import base64
import contextlib
import errno
import os
import socket
import ssl
import threading
from typing import Any, Self

import httpcore
from django.views.decorators.debug import sensitive_variables

from resourcepool.clock import monotonic
from resourcepool.events import sentence_for
from resourcepool.proxies.health_check import socks5
from resourcepool.proxies.health_check.address_filter import AddressFilter, Fault
from resourcepool.resources.state import Verdict

CONNECT_TIMED_OUT = sentence_for("no_connection_in_time")
MAX_ADDRESSES = 4  # of one host that are tried
LOCAL_ERRORS = {
    *(errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE),
    *(errno.ENOBUFS, errno.ENOMEM, errno.EACCES, errno.EPERM),
}


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


class Route(httpcore.NetworkBackend):
    """Opens the connections of httpcore: to an HTTP proxy, or through a SOCKS proxy."""

    def __init__(self, proxy: Any, address_filter: AddressFilter, deadline: Deadline) -> None:
        """Resolve the proxy; raises Fault."""
        self._scheme, self._host, self._port = str(proxy.scheme), str(proxy.host), int(proxy.port)
        self._login = (str(proxy.username).encode(), str(proxy.password).encode())
        self._is_socks = self._scheme.startswith("socks")
        self._filter, self._deadline = address_filter, deadline
        self._addresses = address_filter.resolve(self._host, self._port)[:MAX_ADDRESSES]

    @sensitive_variables()
    def pool(self, tls: ssl.SSLContext) -> httpcore.ConnectionPool:
        """Return a connection pool for this route; ``tls`` verifies pages and proxies."""
        if self._is_socks:  # not httpcore's SOCKS: see ``socks5``
            return httpcore.ConnectionPool(tls, network_backend=self)
        name, password = self._login
        login = b"Basic " + base64.b64encode(name + b":" + password)
        return httpcore.HTTPProxy(
            httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target="/"),
            proxy_headers={b"Proxy-Authorization": login} if any(self._login) else {},
            ssl_context=tls,
            proxy_ssl_context=tls if self._scheme == "https" else None,
            network_backend=self,
        )

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        """Return a connection to the proxy, or through SOCKS to ``host``; raises Fault or OSError."""
        if self._scheme == "socks5":  # not socks5h: resolve the name here
            host = self._filter.resolve(host, port)[0]
        stream = self._connect()
        if self._is_socks:
            sock: socket.socket = stream.get_extra_info("socket")
            sock.settimeout(self._deadline.left)
            try:
                socks5.connect(sock, host, port, *self._login)
            except BaseException:
                stream.close()
                raise
        return stream

    def _connect(self) -> httpcore.NetworkStream:
        faults: list[Fault] = []
        for address in self._addresses:
            try:
                stream = httpcore.SyncBackend().connect_tcp(address, self._port, self._deadline.left)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                faults.append(_fault(error.__cause__))
            else:
                self._deadline.hold(stream.get_extra_info("socket"))
                return stream
        raise faults[0]


def _fault(error: BaseException | None) -> Fault:
    """Return why a connection failed, and the verdict about the proxy."""
    number = getattr(error, "errno", None) or 0
    if isinstance(error, TimeoutError):
        return Fault(Verdict.BAD, CONNECT_TIMED_OUT)
    if isinstance(error, ConnectionRefusedError):
        return Fault(Verdict.BAD, sentence_for("connection_refused"))
    if number in LOCAL_ERRORS:
        return Fault(Verdict.UNKNOWN, sentence_for("host_not_connected", error=errno.errorcode[number]))
    return Fault(Verdict.BAD, sentence_for("no_connection", error=errno.errorcode.get(number, "broken off")))
