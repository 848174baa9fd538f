"""Public and non-public IP addresses.

Not by ``ipaddress``, whose lists differ between versions of Python. These are IANA's special-purpose addresses (2025),
and those used by clouds and old tunnels.
"""

import ipaddress
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NOT_PUBLIC_4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; 100.100.100.200: Alibaba's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host service
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",  # 192.0.0.192: Oracle's metadata
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that IANA has allocated so far
NOT_PUBLIC_6 = [
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # Teredo among them
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",
        "3ffe::/16",
        "3fff::/20",
    )
]
MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
THIS_NETWORK = NOT_PUBLIC_4[0]

_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_LOW_32, _LOW_56 = (1 << 32) - 1, (1 << 56) - 1


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
