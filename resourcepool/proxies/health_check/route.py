"""The way to a proxy: its name is resolved and checked once, and connections go to these addresses only."""

import base64
import errno
import socket
import ssl
from typing import Any

import httpcore
from django.views.decorators.debug import sensitive_variables

from resourcepool.events import sentence_for
from resourcepool.proxies.health_check import socks5
from resourcepool.proxies.health_check.address_filter import AddressFilter
from resourcepool.proxies.health_check.deadline import Deadline
from resourcepool.proxies.health_check.fault import Fault
from resourcepool.resources.state import Verdict

TOO_LATE = sentence_for("no_connection_in_time")
MOST_ADDRESSES = 4  # of one host that are tried
OURS = {
    *(errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE),
    *(errno.ENOBUFS, errno.ENOMEM, errno.EACCES, errno.EPERM),
}


class Route(httpcore.NetworkBackend):
    """Opens the connections of httpcore: to one proxy, or through it where it speaks SOCKS."""

    def __init__(self, proxy: Any, guard: AddressFilter, deadline: Deadline) -> None:
        """Look the proxy up; raises Fault."""
        self._scheme, self._host, self._port = str(proxy.scheme), str(proxy.host), int(proxy.port)
        self._login = (str(proxy.username).encode(), str(proxy.password).encode())
        self._is_socks = self._scheme.startswith("socks")
        self._guard, self._deadline = guard, deadline
        self._addresses = guard.resolve(self._host, self._port)[:MOST_ADDRESSES]

    @sensitive_variables()
    def pool(self, tls: ssl.SSLContext) -> httpcore.ConnectionPool:
        """Return the pool that sends requests on this route, to pages and proxies whose certificates ``tls`` trusts."""
        if self._is_socks:  # not httpcore's: it logs the password, and fails when an answer comes in pieces
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
        if self._scheme == "socks5":  # not socks5h: the name is to be looked up here
            host = self._guard.resolve(host, port)[0]
        stream = self._connected()
        if self._is_socks:
            sock: socket.socket = stream.get_extra_info("socket")
            sock.settimeout(self._deadline.left)
            try:
                socks5.connect(sock, host, port, *self._login)
            except BaseException:
                stream.close()
                raise
        return stream

    def _connected(self) -> httpcore.NetworkStream:
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
    """Say in our own words why a connection was not made, and whose fault that is."""
    number = getattr(error, "errno", None) or 0
    if isinstance(error, TimeoutError):
        return Fault(Verdict.BAD, TOO_LATE)
    if isinstance(error, ConnectionRefusedError):
        return Fault(Verdict.BAD, sentence_for("connection_refused"))
    if number in OURS:
        return Fault(Verdict.UNKNOWN, sentence_for("host_not_connected", error=errno.errorcode[number]))
    return Fault(Verdict.BAD, sentence_for("no_connection", error=errno.errorcode.get(number, "broken off")))
