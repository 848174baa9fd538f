"""Keeps checks out of this host's own network (protection against server-side request forgery).

Otherwise a user who may add a proxy could make this host connect to its metadata service, its database or a printer.
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

ENTRY_FORMAT = (
    "a network (10.1.0.0/16), an address or a host name, with or without a port (squid.lan:3128, [fd00::1]:80)"
)

LIST_FORMAT = 'a list of networks and host names, e.g. ["10.1.0.0/16", "squid.lan:3128"]'

_WITH_PORT = re.compile(r"(?:\[(?P<bracketed>[^\[\]]+)\]|(?P<plain>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")


class AddressFilter:
    """Refuses addresses that are not public, unless ``allow`` has their network or the host name.

    An entry with a port allows only that port.
    """

    def __init__(self, allow: Sequence[str] = ()) -> None:
        if isinstance(allow, str) or not all(isinstance(entry, str) for entry in allow):
            raise BadOption("allow", allow, LIST_FORMAT)
        self._allowed = [_parse_entry(entry) for entry in allow]

    def resolve(self, host: str, port: int) -> list[str]:
        """Resolve ``host`` and return its addresses. Connect only to these: a second lookup may return others.

        Raises:
            Fault: an address is refused, or the host has none.
        """
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None)):
                raise Fault(Verdict.BAD, sentence_for("no_such_host", host=host)) from None
            raise Fault(Verdict.UNKNOWN, sentence_for("host_not_looked_up", host=host)) from None
        except (UnicodeError, OSError):
            raise Fault(Verdict.BAD, sentence_for("not_a_host_name", host=host)) from None
        addresses = list(dict.fromkeys(str(endpoint[0]) for *_, endpoint in infos))
        for address in addresses:
            self.check(host, address, port)
        return addresses

    def check(self, host: str, address: str, port: int) -> None:
        """Raise NotPublic unless connections to ``port`` of ``address``, an address of ``host``, are allowed."""
        without_zone = ipaddress.ip_address(address.partition("%")[0])
        if is_public(without_zone) or self._is_allowed(host.lower().removesuffix("."), without_zone, port):
            return
        shown_host = host if host == address else f"{host} ({address})"
        raise NotPublic(Verdict.UNKNOWN, sentence_for("not_public", host=shown_host))

    def _is_allowed(self, host: str, address: Address, port: int) -> bool:
        entries = [entry for entry, entry_port in self._allowed if entry_port in (None, port)]
        return any(
            host == entry if isinstance(entry, str) else address in entry or unwrap_ipv4(address) in entry
            for entry in entries
        )


def _parse_entry(entry: str) -> tuple[Network | str, int | None]:
    """Return the network or host name and the port (None: any) of an entry of ``allow``; raises BadOption."""
    if network := _network(entry):  # an IPv6 address is full of colons
        return network, None
    match = _WITH_PORT.fullmatch(entry)
    port = int(match["port"]) if match and match["port"] else None
    if match and port in (None, *range(1, 65_536)):
        text = match["bracketed"] or match["plain"]
        if network := _network(text):
            return network, port
        with contextlib.suppress(BadField):
            if not match["bracketed"]:
                return fields.host(text), port
    raise BadOption("allow", entry, ENTRY_FORMAT)


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
