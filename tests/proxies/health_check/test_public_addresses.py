"""Public addresses, by our own list, the same on every Python."""

import ipaddress
from typing import Any

import pytest

from resourcepool.proxies.health_check.address_filter import NOT_PUBLIC_4, NOT_PUBLIC_6, THIS_NETWORK, is_public

PUBLIC = [
    *("8.8.8.8", "1.0.0.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *("128.0.0.1", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255"),
    *("192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0"),
    *("198.17.255.255", "198.20.0.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "168.63.129.17"),
    *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:82a::200e", "2001:200::1"),
    "3fff:1000::1",
    *("2606:4700:10::6814:1a2b", "::ffff:8.8.8.8", "64:ff9b::808:808", "2a00::5efe:808:808", "2a00::808:808"),
    "2a01:4f8:c17:1234:9c4e:7aff:fe00:101",  # ends like an address inside, by chance
]
INSIDE = [
    *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "100.100.100.200", "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1"),
    *("192.0.0.1", "192.0.0.9", "192.0.0.170", "192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1"),
    *("192.88.99.1", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"),
    *("168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::a83f:8110"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "fec0::1", "5f00::1"),
    *("100::1", "2001:db8::1", "3fff::1", "3ffe::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1"),
    *("2001:1::1", "2001:30::1", "2620:4f:8000::1"),
]
EMBEDDED = [
    *("::ffff:127.0.0.1", "::ffff:192.0.0.192", "64:ff9b::a9fe:a9fe", "64:ff9b::c058:6301"),
    "64:ff9b:1::7f00:1",
    *("2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7", "2001::f5ff:fffe"),
    *("::127.0.0.1", "::10.0.0.5", "::ffff:0:127.0.0.1", "::5efe:7f00:1", "fe80::5efe:8.8.8.8"),
    *("2a00:1:2:3:0:5efe:10.0.0.5", "2a00:1:2:3:200:5efe:169.254.169.254", "2a00::5efe:0.0.0.0"),
    *("2a00:1:2:3::10.0.0.5", "2a00:1:2:3::192.168.0.1"),  # a local NAT64 prefix of 96 bits
    *("2a00:1:a00:5::", "2a00:1:20a:0:5::", "2a00:1:2:3:a:0:500:0", "2a00:1:203:a00:5::"),
    "2a00:1:20a::5:0:0:0",
]


def of(text: str) -> Any:
    return ipaddress.ip_address(text)


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert is_public(of(address))


@pytest.mark.parametrize("address", [*INSIDE, *EMBEDDED])
def test_not_public(address: str) -> None:
    assert not is_public(of(address))


@pytest.mark.parametrize("network", NOT_PUBLIC_4)
def test_no_network_of_the_list_gets_through_as_it_is_or_inside_another_address(network: Any) -> None:
    for one in (network[0], network[-1]):
        assert not is_public(one)
        for around in ("::ffff:0:0", "64:ff9b::", "2a00::5efe:0:0"):
            assert not is_public(ipaddress.IPv6Address(int(of(around)) | int(one)))
        if one not in THIS_NETWORK:
            assert not is_public(ipaddress.IPv6Address(int(of("2a00:1:2:3::")) | int(one)))


@pytest.mark.parametrize("network", NOT_PUBLIC_6)
def test_no_network_of_the_list_for_ipv6_gets_through(network: Any) -> None:
    assert not is_public(network[0] + 1)
    assert not is_public(network[-1])


def test_python_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(_: Any) -> Any:
        raise AssertionError("every version of Python has another answer")

    says = (
        *("is_global", "is_private", "is_reserved", "is_multicast", "is_loopback", "is_link_local"),
        "is_site_local",
    )
    for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
        for name in (*says, "is_unspecified", "ipv4_mapped", "sixtofour", "teredo"):
            if hasattr(kind, name):
                monkeypatch.setattr(kind, name, property(asked))
    for address in (*INSIDE, *EMBEDDED):
        assert not is_public(of(address))
