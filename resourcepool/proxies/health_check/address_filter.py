"""Keeps checks from being sent into this host's own network (server-side request forgery).

Otherwise a user who may add a proxy could make this server connect to its metadata service, its database or a printer.
"""

import contextlib
import ipaddress
import re
import socket
from collections.abc import Sequence

from resourcepool.events import sentence_for
from resourcepool.exceptions import BadOption
from resourcepool.proxies import fields
from resourcepool.proxies.fields import BadField
from resourcepool.proxies.health_check.fault import Fault, NotPublic
from resourcepool.proxies.health_check.public_addresses import Address, is_public, unwrap_ipv4
from resourcepool.resources.state import Verdict

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

ALLOWED = "a network (10.1.0.0/16), an address or a host name, each perhaps with a port (squid.lan:3128, [fd00::1]:80)"

LIST = 'a list of networks and host names, e.g. ["10.1.0.0/16", "squid.lan:3128"]'

_WITH_PORT = re.compile(r"(?:\[(?P<bracketed>[^\[\]]+)\]|(?P<plain>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")


class AddressFilter:
    """Refuses addresses that are not public, unless ``allow`` has their network or the host's name.

    An entry with a port allows that port only.
    """

    def __init__(self, allow: Sequence[str] = ()) -> None:
        if isinstance(allow, str) or not all(isinstance(entry, str) for entry in allow):
            raise BadOption("allow", allow, LIST)
        self._allowed = [_allowed(entry) for entry in allow]

    def resolve(self, host: str, port: int) -> list[str]:
        """Look ``host`` up once and return its addresses: connect to these, as the next answer may differ.

        Raises:
            Fault: one of them is refused, or there is none.
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None)):
                raise Fault(Verdict.BAD, sentence_for("no_such_host", host=host)) from None
            raise Fault(Verdict.UNKNOWN, sentence_for("host_not_looked_up", host=host)) from None
        except (UnicodeError, OSError):
            raise Fault(Verdict.BAD, sentence_for("not_a_host_name", host=host)) from None
        addresses = list(dict.fromkeys(str(where[0]) for *_, where in found))
        for address in addresses:
            self.check(host, address, port)
        return addresses

    def check(self, host: str, address: str, port: int) -> None:
        """Raise NotPublic unless connections to ``port`` of ``address``, which ``host`` resolved to, are allowed."""
        plain = ipaddress.ip_address(address.partition("%")[0])
        if is_public(plain) or self._is_allowed(host.lower().removesuffix("."), plain, port):
            return
        what = host if host == address else f"{host} ({address})"
        raise NotPublic(Verdict.UNKNOWN, sentence_for("not_public", host=what))

    def _is_allowed(self, host: str, address: Address, port: int) -> bool:
        allowed = [where for where, on_port in self._allowed if on_port in (None, port)]
        return any(
            host == where if isinstance(where, str) else address in where or unwrap_ipv4(address) in where
            for where in allowed
        )


def _allowed(entry: str) -> tuple[Network | str, int | None]:
    """Return the network or name, and the port (None: any), that an entry of ``allow`` means; raises BadOption."""
    if network := _network(entry):  # an IPv6 address is full of colons
        return network, None
    found = _WITH_PORT.fullmatch(entry)
    port = int(found["port"]) if found and found["port"] else None
    if found and port in (None, *range(1, 65_536)):
        text = found["bracketed"] or found["plain"]
        if network := _network(text):
            return network, port
        with contextlib.suppress(BadField):
            if not found["bracketed"]:
                return fields.host(text), port
    raise BadOption("allow", entry, ALLOWED)


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
