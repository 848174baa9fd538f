"""The way to a proxy: its addresses are looked up once and checked, and connections go to these and nowhere else."""

import base64
import errno
import socket
from typing import Any, cast

import socks
from django.views.decorators.debug import sensitive_variables

from resourcepool.events import say
from resourcepool.proxies.checking.address_filter import Guard
from resourcepool.proxies.checking.deadline import Lifeline
from resourcepool.proxies.checking.fault import Fault
from resourcepool.resources.state import Verdict

TOO_LATE = say("no_connection_in_time")
MOST_ADDRESSES = 4  # of one host that are tried
OURS = {
    getattr(errno, name)
    for name in (
        "ENETUNREACH",
        "ENETDOWN",
        "EADDRNOTAVAIL",
        "EMFILE",
        "ENFILE",
        "ENOBUFS",
        "ENOMEM",
        "EACCES",
        "EPERM",
    )
}


class Route:
    """Opens connections to one proxy, or through it where it speaks SOCKS."""

    def __init__(self, proxy: Any, guard: Guard, lifeline: Lifeline) -> None:
        """Look the proxy up; raises Fault."""
        self.scheme, self.host, self.port = str(proxy.scheme), str(proxy.host), int(proxy.port)
        self._login = (str(proxy.username), str(proxy.password))
        self._guard, self._lifeline = guard, lifeline
        self._addresses = guard.resolve(self.host, self.port)[:MOST_ADDRESSES]

    @property
    def is_socks(self) -> bool:
        """Whether the proxy passes bytes on and knows nothing of HTTP."""
        return self.scheme.startswith("socks")

    @property
    def url(self) -> str:
        """The proxy's URL, without its login."""
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    @sensitive_variables()
    def headers(self) -> dict[str, str]:
        """What an HTTP proxy is sent to let us through."""
        if not any(self._login):
            return {}
        login = base64.b64encode(":".join(self._login).encode()).decode()
        return {"Proxy-Authorization": f"Basic {login}"}

    def connect(self, host: str, port: int) -> socket.socket:
        """Return a connection to the proxy, or through SOCKS to ``host``; raises Fault."""
        if self.scheme == "socks5":  # not socks5h: the name is to be looked up here
            host = self._guard.resolve(host, port)[0][1]
        faults: list[Fault] = []
        for family, address in self._addresses:
            sock = self._socket(family, address)
            try:
                self._lifeline.hold(sock)
                sock.settimeout(self._lifeline.left)
                sock.connect((host, port) if self.is_socks else (address, self.port))
            except OSError as error:
                sock.close()
                faults.append(Fault(Verdict.BAD, TOO_LATE) if self._lifeline.is_cut else _fault(error))
            else:
                return sock
        raise faults[0]

    def ensure_in_time(self) -> None:
        """Raise Fault if the time is over, and connections are cut."""
        if self._lifeline.is_cut:
            raise Fault(Verdict.BAD, TOO_LATE)

    @sensitive_variables()
    def _socket(self, family: socket.AddressFamily, address: str) -> socket.socket:
        if not self.is_socks:
            return socket.socket(family, socket.SOCK_STREAM)
        through = socks.socksocket(family, socket.SOCK_STREAM)
        name, password = self._login
        through.set_proxy(socks.SOCKS5, address, self.port, True, name or None, password or None)
        return cast(socket.socket, through)


def _fault(error: OSError) -> Fault:
    """Say in our own words why a connection came not about, and whose fault that is."""
    cause: OSError = getattr(error, "socket_err", None) or error  # PySocks wraps what the system said
    number = cause.errno or 0
    if isinstance(cause, TimeoutError):
        return Fault(Verdict.BAD, TOO_LATE)
    if isinstance(cause, ConnectionRefusedError):
        return Fault(Verdict.BAD, say("connection_refused"))
    if isinstance(cause, socks.SOCKS5AuthError):
        return Fault(Verdict.BAD, say("login_refused"))
    if isinstance(cause, socks.SOCKS5Error):
        return Fault(Verdict.BAD, say("target_not_reached"))
    if number in OURS:
        return Fault(Verdict.UNKNOWN, say("host_not_connected", error=errno.errorcode[number]))
    if isinstance(error, socks.ProxyError) and not number:
        return Fault(Verdict.BAD, say("no_socks"))
    return Fault(Verdict.BAD, say("no_connection", error=errno.errorcode.get(number, "broken off")))
