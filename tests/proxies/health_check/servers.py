"""Real local proxies, good and bad, and a target page; each in threads."""

import contextlib
import ipaddress
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

PAGE = b"hello from the target"
CHUNK = 65_536


@dataclass
class Seen:
    """The requests to a server, and its running threads."""

    heads: list[bytes] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)


Behaviour = Callable[[socket.socket, Seen], None]


@contextlib.contextmanager
def serving(behave: Behaviour) -> Iterator[tuple[int, Seen]]:
    """Serve connections by ``behave``; yield the port and the requests."""
    seen = Seen()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                behave(self.request, seen)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, request_queue_size = True, 128

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1], seen
        finally:
            seen.is_over.set()
            server.shutdown()


def head(sock: socket.socket, seen: Seen) -> bytes:
    """Read the head of a request."""
    text = b""
    while b"\r\n\r\n" not in text:
        if not (more := sock.recv(CHUNK)):
            raise ConnectionError
        text += more
    seen.heads.append(text)
    return text


def page(sock: socket.socket, seen: Seen) -> None:
    """The target."""
    head(sock, seen)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE))


def plain(sock: socket.socket, seen: Seen) -> None:
    """A target without TLS."""
    sock.recv(CHUNK)
    sock.sendall(b"HTTP/1.1 400 What\r\n\r\n")


def over_tls(behave: Behaviour, context: ssl.SSLContext) -> Behaviour:
    """The same, over TLS."""

    def wrapped(sock: socket.socket, seen: Seen) -> None:
        with context.wrap_socket(sock, server_side=True) as safe:
            behave(safe, seen)

    return wrapped


def answering(text: bytes) -> Behaviour:
    """Answers every request with this."""

    def behave(sock: socket.socket, seen: Seen) -> None:
        head(sock, seen)
        sock.sendall(text)

    return behave


def status(code: int, more: str = "") -> Behaviour:
    return answering(f"HTTP/1.1 {code} Whatever\r\n{more}Content-Length: 0\r\n\r\n".encode())


def silent(sock: socket.socket, seen: Seen) -> None:
    """Accepts connections and sends nothing."""
    seen.heads.append(b"")
    seen.is_over.wait(30)


def trickling(sock: socket.socket, seen: Seen) -> None:
    """Sends a byte now and then, without end."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not seen.is_over.wait(0.02):
        sock.sendall(b"x")


def trickling_page(sock: socket.socket, seen: Seen) -> None:
    """The same, after a valid beginning without a length: cut off, it looks complete."""
    head(sock, seen)
    sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + PAGE)
    while not seen.is_over.wait(0.02):
        sock.sendall(b"x")


def endless(sock: socket.socket, seen: Seen) -> None:
    """Sends without end."""
    head(sock, seen)
    sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + PAGE)
    while not seen.is_over.is_set():
        sock.sendall(b"x" * CHUNK)


def http_proxy(target: int, login: bytes = b"") -> Behaviour:
    """A good HTTP proxy that resolves every name to the target; ``login``: the required Proxy-Authorization."""

    def behave(sock: socket.socket, seen: Seen) -> None:
        request = head(sock, seen)
        if login and b"Proxy-Authorization: Basic " + login not in request:
            sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        method, where, _ = request.split(b" ", 2)
        seen.hosts.append(where.decode())
        with _connected(target) as onward:
            if method == b"CONNECT":
                sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                onward.sendall(request)
            _pipe(sock, onward)

    return behave


def socks_proxy(target: int, name: bytes = b"", password: bytes = b"", *, in_pieces: bool = False) -> Behaviour:
    """A good SOCKS5 proxy, as above; ``in_pieces``: the answer to CONNECT comes byte by byte."""

    def behave(sock: socket.socket, seen: Seen) -> None:
        _version, count = _exactly(sock, 2)
        _exactly(sock, count)
        sock.sendall(b"\x05\x02" if name else b"\x05\x00")
        if name:
            _exactly(sock, 1)
            got = [_exactly(sock, _exactly(sock, 1)[0]) for _ in range(2)]
            sock.sendall(b"\x01\x00" if got == [name, password] else b"\x01\x01")
            if got != [name, password]:
                return
        kind = _exactly(sock, 4)[3]
        size = {1: 4, 4: 16}.get(kind) or _exactly(sock, 1)[0]
        host = _exactly(sock, size)
        _exactly(sock, 2)
        seen.hosts.append(host.decode() if kind == 3 else str(ipaddress.ip_address(host)))
        with _connected(target) as onward:
            answer = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00"
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in map(bytes, zip(answer, strict=True)) if in_pieces else [answer]:
                sock.sendall(piece)
            _pipe(sock, onward)

    return behave


def socks_refusing(code: int) -> Behaviour:
    """A SOCKS5 proxy that reaches nothing."""

    def behave(sock: socket.socket, seen: Seen) -> None:
        _exactly(sock, 3)
        sock.sendall(b"\x05\x00")
        sock.recv(CHUNK)
        sock.sendall(b"\x05%c\x00\x01\x00\x00\x00\x00\x00\x00" % code)

    return behave


def closed_port() -> int:
    """Return a port without a listener."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _connected(port: int) -> socket.socket:
    sock = socket.socket()  # not create_connection(): tests have names looked up in their own way
    try:
        sock.connect(("127.0.0.1", port))
    except OSError:
        sock.close()
        raise
    return sock


def _pipe(one: socket.socket, other: socket.socket) -> None:
    def copy(source: Any, sink: Any) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    back = threading.Thread(target=copy, args=(other, one), daemon=True)
    back.start()
    copy(one, other)
    back.join(10)


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (more := sock.recv(count - len(data))):
            raise ConnectionError
        data += more
    return data
