"""Keeps checks out of this host's own network (protection against server-side request forgery).

Otherwise a user who may add a proxy could make this host connect to its metadata service, its database or a printer.

Which addresses are public is not left to ``ipaddress``, whose lists differ between versions of Python. These are IANA's
special-purpose addresses (2025), and those used by clouds and old tunnels.
"""

import contextlib
import ipaddress
import re
import socket
from collections.abc import Iterator, Sequence

from resourcepool.events import sentence_for
from resourcepool.exceptions import BadOption
from resourcepool.proxies import fields
from resourcepool.resources.import_file import BadField
from resourcepool.resources.state import Verdict

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NOT_PUBLIC_4 = [
    ipaddress.IPv4Network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
        "100.64.0.0/10",  # carrier-grade NAT; 100.100.100.200: Alibaba's metadata
        "168.63.129.16/32",  # Azure's host service
        "192.0.0.0/24",  # 192.0.0.192: Oracle's metadata
        *("192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
]
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that IANA has allocated so far
NOT_PUBLIC_6 = [
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # Teredo among them
        "2002::/16",  # 6to4
        *("2001:db8::/32", "2620:4f:8000::/48", "3ffe::/16", "3fff::/20"),
    )
]
MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
THIS_NETWORK = NOT_PUBLIC_4[0]

_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_LOW_32, _LOW_56 = (1 << 32) - 1, (1 << 56) - 1

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

ENTRY_FORMAT = (
    "a network (10.1.0.0/16), an address or a host name, with or without a port (squid.lan:3128, [fd00::1]:80)"
)

LIST_FORMAT = 'a list of networks and host names, e.g. ["10.1.0.0/16", "squid.lan:3128"]'

_WITH_PORT = re.compile(r"(?:\[(?P<bracketed>[^\[\]]+)\]|(?P<plain>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")


class Fault(Exception):
    """A failed check. ``why`` is our own text, because texts of libraries may contain secrets."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(why)
        self.verdict, self.why = verdict, why


class NotPublic(Fault):
    """The address is not public, and the settings do not allow it."""


def is_public(address: Address) -> bool:
    """Return whether an address, and every IPv4 address that it may embed, is public."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in net for net in NOT_PUBLIC_4)
    if (unwrapped := unwrap_ipv4(address)) != address:
        return is_public(unwrapped)
    is_allocated = address in GLOBAL_UNICAST and not any(address in net for net in NOT_PUBLIC_6)
    return is_allocated and all(map(is_public, _embedded_ipv4(address)))


def unwrap_ipv4(address: Address) -> Address:
    """Return the IPv4 address in a mapped or NAT64 IPv6 address; otherwise the address itself."""
    if isinstance(address, ipaddress.IPv6Address) and (address in MAPPED or address in NAT64):
        return ipaddress.IPv4Address(int(address) & _LOW_32)
    return address


def _embedded_ipv4(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    """Yield the IPv4 addresses to which ISATAP or a local NAT64 may translate an IPv6 address."""
    bits = int(address)
    before, last = (bits >> 32) & _LOW_32, bits & _LOW_32
    if before in _ISATAP:
        yield ipaddress.IPv4Address(last)
    values = {
        _nat64_value(bits, zeros) for zeros in (56, 48, 40, 32, 24)
    }  # prefixes of 32 to 64 bits (RFC 6052)
    if before == 0:
        values.add(last)  # a prefix of 96 bits that ends with zeros
    addresses = (ipaddress.IPv4Address(value) for value in values if value is not None)
    yield from (address for address in addresses if address not in THIS_NETWORK)  # such as ::1


def _nat64_value(bits: int, zeros: int) -> int | None:
    """Return the 32 bits before ``zeros`` trailing zero bits; without the octet at bit 64, which must be zero, too."""
    joined = (bits >> 64 << 56) | (bits & _LOW_56)
    is_nat64 = (bits >> 56) & 0xFF == 0 and joined & ((1 << zeros) - 1) == 0
    return (joined >> zeros) & _LOW_32 if is_nat64 else None


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
