"""A SOCKS 5 client (RFC 1928, RFC 1929).

Not PySocks, which garbles logins of more than 127 bytes; nor ``httpcore[socks]`` (1.0.9), which has no timeout while it
speaks SOCKS, fails if an answer arrives in pieces, with a login refuses proxies that need none, raises errors that are
not its own, logs the login, and cannot resolve the name here without another TLS name and ``Host`` header.
"""

import ipaddress
import socket

from django.views.decorators.debug import sensitive_variables

from resourcepool.events import sentence_for
from resourcepool.proxies.health_check.address_filter import Fault
from resourcepool.resources.state import Verdict

NO_LOGIN, LOGIN = 0, 2
IPV4, NAME, IPV6 = 1, 3, 4
SIZES = {IPV4: 4, IPV6: 16}


@sensitive_variables()
def connect(sock: socket.socket, host: str, port: int, username: bytes, password: bytes) -> None:
    """Make the proxy connected to ``sock`` connect to ``host``, a name or an IP address.

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
