"""One HTTP request through a proxy, limited in time and size; no redirects, no settings from the environment.

The name of the proxy is resolved and checked once; connections go only to these addresses.
"""

import base64
import contextlib
import errno
import ipaddress
import logging
import os
import socket
import ssl
import threading
from contextvars import ContextVar
from typing import Any, NamedTuple, Self

import certifi
import httpcore
from django.views.decorators.debug import sensitive_variables

from resourcepool.clock import monotonic
from resourcepool.events import sentence_for
from resourcepool.proxies.health_check.address_filter import AddressFilter, Fault
from resourcepool.resources.state import Verdict

TIMED_OUT = sentence_for("no_answer_in_time")
MAX_BODY_BYTES = 64 * 1024  # of the answer; the rest is not read
HEADERS = [("User-Agent", "resourcepool-check"), ("Accept-Encoding", "identity"), ("Connection", "close")]
TIMEOUTS = (httpcore.TimeoutException, TimeoutError)
FAILURES = (*TIMEOUTS, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, OSError, ValueError)

CONNECT_TIMED_OUT = sentence_for("no_connection_in_time")
MAX_ADDRESSES = 4  # of one host that are tried
LOCAL_ERRORS = {
    *(errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE),
    *(errno.ENOBUFS, errno.ENOMEM, errno.EACCES, errno.EPERM),
}
# Of SOCKS 5:
NO_LOGIN, LOGIN = 0, 2
IPV4, NAME, IPV6 = 1, 3, 4
SIZES = {IPV4: 4, IPV6: 16}

_is_checking = ContextVar("is_checking", default=False)
# httpcore's debug log repeats data from the proxy, which may contain our login.
for _part in ("connection", "http11", "proxy"):
    logging.getLogger(f"httpcore.{_part}").addFilter(lambda _: not _is_checking.get())


class Answer(NamedTuple):
    """The status and the body, up to MAX_BODY_BYTES."""

    status: int
    body: bytes


class _Context(ssl.SSLContext):
    """Removes the brackets of IPv6 addresses, which httpcore needs in URLs."""

    def wrap_socket(self, sock: Any, *_: Any, server_hostname: Any = None, **__: Any) -> ssl.SSLSocket:
        return super().wrap_socket(sock, server_hostname=server_hostname.strip("[]"))

    def wrap_bio(self, incoming: Any, outgoing: Any, *_: Any, server_hostname: Any = None, **__: Any) -> Any:
        return super().wrap_bio(incoming, outgoing, server_hostname=server_hostname.strip("[]"))


def tls_context(ca: str) -> ssl.SSLContext:
    """Return a context that trusts the certificates in the file ``ca``; "": the usual public ones."""
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(ca or certifi.where())
    return context


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
        if self._is_socks:  # not httpcore's SOCKS: see ``connect_socks5``
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
                connect_socks5(sock, host, port, *self._login)
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


def get(url: str, route: Route, deadline: Deadline, tls: ssl.SSLContext) -> Answer:
    """Get ``url`` through the proxy at the end of ``route``.

    Raises:
        Fault: no proper answer in time.
    """
    token = _is_checking.set(True)
    try:
        answer = _get(url, route, deadline, tls)
    except FAILURES as error:
        # Not the text of the error, which may contain data from the proxy.
        is_timeout = deadline.is_exceeded or isinstance(error, TIMEOUTS)
        raise Fault(Verdict.BAD, TIMED_OUT if is_timeout else _why(error)) from None
    finally:
        _is_checking.reset(token)
    if deadline.is_exceeded:  # a shut-down connection looks like the end of the answer
        raise Fault(Verdict.BAD, TIMED_OUT)
    return answer


def _get(url: str, route: Route, deadline: Deadline, tls: ssl.SSLContext) -> Answer:
    limits = {"timeout": dict.fromkeys(("connect", "read", "write"), deadline.left)}
    page, body = httpcore.URL(url), b""
    if b":" in page.host:
        page.host = b"[%b]" % page.host
    with route.pool(tls) as pool, pool.stream("GET", page, headers=HEADERS, extensions=limits) as answer:
        for part in answer.iter_stream():
            body += part
            if len(body) >= MAX_BODY_BYTES:
                break
    return Answer(answer.status, body[:MAX_BODY_BYTES])


def _why(error: Exception) -> str:
    if isinstance(error, httpcore.ProxyError):  # such as "502 Bad Gateway"
        status = str(error)[:3]
        return (
            sentence_for("login_refused_407")
            if status == "407"
            else sentence_for("not_tunnelled", count=status)
        )
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return sentence_for("tls_failed")
        cause = cause.__cause__ or cause.__context__
    return sentence_for("no_proper_answer", error=type(error).__name__)


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


@sensitive_variables()
def connect_socks5(sock: socket.socket, host: str, port: int, username: bytes, password: bytes) -> None:
    """Make the SOCKS 5 proxy connected to ``sock`` connect to ``host``, a name or an IP address (RFC 1928, RFC 1929).

    Not PySocks, which garbles logins of more than 127 bytes; nor ``httpcore[socks]`` (1.0.9), which has no timeout
    while it speaks SOCKS, fails if an answer arrives in pieces, with a login refuses proxies that need none, raises
    errors that are not its own, logs the login, and cannot resolve the name here without another TLS name and ``Host``
    header.

    Raises:
        Fault: the proxy does not speak SOCKS 5, or refused.
        OSError: the connection broke, or timed out.
        ValueError: user name or password has more than 255 bytes.
    """
    methods = [NO_LOGIN, LOGIN] if username or password else [NO_LOGIN]
    sock.sendall(bytes([5, len(methods), *methods]))
    version, method = _read(sock, 2)
    if version != 5:
        raise Fault(Verdict.BAD, sentence_for("no_socks"))
    if method not in methods or (method == LOGIN and not _log_in(sock, username, password)):
        raise Fault(Verdict.BAD, sentence_for("login_refused"))
    sock.sendall(b"\x05\x01\x00" + _address(host) + port.to_bytes(2, "big"))
    _, reply, _, kind = _read(sock, 4)
    if reply:
        raise Fault(Verdict.BAD, sentence_for("target_not_reached"))
    _read(sock, (SIZES.get(kind) or _read(sock, 1)[0]) + 2)


@sensitive_variables()
def _log_in(sock: socket.socket, username: bytes, password: bytes) -> bool:
    sock.sendall(b"\x01" + _with_length(username) + _with_length(password))
    return not _read(sock, 2)[1]


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return bytes([NAME]) + _with_length(host.encode())
    return bytes([IPV4 if address.version == 4 else IPV6]) + address.packed


@sensitive_variables()
def _with_length(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def _read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := sock.recv(size - len(data))):
            raise ConnectionResetError
        data += more
    return data
