"""Keeps checks from being sent into this host's own network (server-side request forgery).

Whoever may add a proxy could otherwise have this server speak to its metadata service, its database or a printer.
"""

import ipaddress
import socket
from collections.abc import Sequence

from resourcepool.exceptions import BadOption
from resourcepool.resources.checking.fault import Fault, NotPublic
from resourcepool.resources.state import Verdict

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

NAT64 = ipaddress.ip_network("64:ff9b::/96")
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # all that IANA has given to the internet so far
CLOUD_HOSTS = {ipaddress.ip_address("168.63.129.16")}  # Azure's host service: public in name only


class Guard:
    """Refuses addresses that are not public, unless their network or the host's name is among ``allow``."""

    def __init__(self, allow: Sequence[str] = ()) -> None:
        if isinstance(allow, str) or not all(isinstance(entry, str) for entry in allow):
            raise BadOption(
                "allow", allow, 'a list of networks and host names, e.g. ["10.1.0.0/16", "squid.lan"]'
            )
        self._hosts = {entry.lower().rstrip(".") for entry in allow}
        self._networks = [network for entry in allow if (network := _network(entry)) is not None]

    def resolve(self, host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
        """Look ``host`` up, once, and return its addresses: connect to these, for the next answer may differ.

        Raises:
            Fault: one of them is refused, or there is none.
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None)):
                raise Fault(Verdict.BAD, f"there is no host {host}") from None
            raise Fault(Verdict.UNKNOWN, f"the name {host} could not be looked up") from None
        except (UnicodeError, OSError):
            raise Fault(Verdict.BAD, f"{host} is no host's name") from None
        addresses: list[tuple[socket.AddressFamily, str]]
        addresses = list(dict.fromkeys((family, str(where[0])) for family, _, _, _, where in found))
        for _, address in addresses:
            self.check(host, address)
        return addresses

    def check(self, host: str, address: str) -> None:
        """Raise NotPublic if ``address``, which ``host`` stands for, must not be spoken to."""
        plain = ipaddress.ip_address(address.partition("%")[0])
        meant = embedded(plain)
        if host.lower().rstrip(".") in self._hosts or any(
            plain in net or meant in net for net in self._networks
        ):
            return
        if not is_public(plain):
            what = host if host == address else f"{host} ({address})"
            allowed = "allow it in RESOURCEPOOL['CHECKS'] if that is meant"
            raise NotPublic(Verdict.UNKNOWN, f"{what} is not a public address; {allowed}")


def is_public(address: Address) -> bool:
    """Tell whether an address, or the one that it stands for, belongs to the public internet."""
    meant = embedded(address)
    if isinstance(meant, ipaddress.IPv6Address) and meant not in GLOBAL_UNICAST:
        return False
    return meant.is_global and not meant.is_multicast and meant not in CLOUD_HOSTS


def embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one stands for (mapped, 6to4, Teredo, NAT64); else itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError:
        if "/" in entry:
            raise BadOption("allow", entry, "a network (10.1.0.0/16), an address or a host name") from None
        return None
