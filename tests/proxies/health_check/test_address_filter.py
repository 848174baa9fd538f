"""Checks are not sent into this host's own network."""

import socket
from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.proxies.health_check.address_filter import AddressFilter, Fault, NotPublic
from resourcepool.resources.state import Verdict


@pytest.mark.parametrize("address", ["127.0.0.1", "fe80::1%eth0", "::ffff:10.0.0.1", "192.0.0.192"])
def test_an_address_inside_is_refused_and_says_nothing_about_the_proxy(address: str) -> None:
    with pytest.raises(NotPublic) as refused:
        AddressFilter().check(address, address, 80)
    assert refused.value.verdict is Verdict.UNKNOWN


def test_a_public_address_is_spoken_to() -> None:
    AddressFilter().check("8.8.8.8", "8.8.8.8", 80)


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.1.0.0/16", "10.1.2.3", "10.1.2.3"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.3"),
        ("10.1.2.3/16", "10.1.9.9", "10.1.9.9"),
        ("fd00::/8", "fd12::1", "fd12::1"),
        ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:10.1.2.3"),
        ("Squid.LAN.", "squid.lan", "10.9.9.9"),
    ],
)
def test_unless_they_are_allowed(entry: str, host: str, address: str) -> None:
    AddressFilter([entry]).check(host, address, 80)
    with pytest.raises(NotPublic):
        AddressFilter([entry]).check("other", "192.168.1.1", 80)


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("Squid.LAN.:3128", "squid.lan", "10.9.9.9"),
        ("10.1.2.3:3128", "10.1.2.3", "10.1.2.3"),
        ("10.1.0.0/16:3128", "a.lan", "10.1.2.3"),
        ("[fd00::1]:3128", "a.lan", "fd00::1"),
        ("[fd00::/8]:3128", "a.lan", "fd12::1"),
    ],
)
def test_with_a_port_on_that_port_alone(entry: str, host: str, address: str) -> None:
    AddressFilter([entry]).check(host, address, 3128)
    for other in (80, 312, 31280, 6379):
        with pytest.raises(NotPublic):
            AddressFilter([entry]).check(host, address, other)


def test_the_port_that_is_asked_for_is_the_one_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    resolves_to(monkeypatch, "10.9.9.9")
    guard = AddressFilter(["squid.lan:3128"])
    assert guard.resolve("squid.lan", 3128) == ["10.9.9.9"]
    with pytest.raises(NotPublic):
        guard.resolve("squid.lan", 22)


@pytest.mark.parametrize(
    "allow",
    [
        *("10.0.0.0/8", [10], ["10.0.0.0/33"], ["a/b"], [""], ["squid.lan:x"], ["squid.lan:"], ["squid.lan:0"]),
        *(
            ["squid.lan:65536"],
            ["http://squid.lan"],
            ["squid.lan:80:80"],
            ["[squid.lan]:80"],
            ["*.lan"],
            ["a b"],
        ),
    ],
)
def test_what_can_allow_nothing_is_named(allow: Any) -> None:
    with pytest.raises(BadOption, match="allow"):
        AddressFilter(allow)


def test_a_name_is_refused_if_any_of_its_addresses_is(monkeypatch: pytest.MonkeyPatch) -> None:
    resolves_to(monkeypatch, "8.8.8.8", "127.0.0.1")
    with pytest.raises(NotPublic, match=r"rebind.example \(127.0.0.1\) is not a public address"):
        AddressFilter().resolve("rebind.example", 80)
    assert AddressFilter(["127.0.0.0/8"]).resolve("rebind.example", 80) == [
        "8.8.8.8",
        "127.0.0.1",
    ]


@pytest.mark.parametrize(
    ("error", "verdict"), [(socket.EAI_NONAME, Verdict.BAD), (socket.EAI_AGAIN, Verdict.UNKNOWN)]
)
def test_a_name_that_does_not_exist_is_not_a_name_server_that_is_down(
    monkeypatch: pytest.MonkeyPatch, error: int, verdict: Verdict
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise socket.gaierror(error, "")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(Fault) as found:
        AddressFilter().resolve("p.example", 80)
    assert found.value.verdict is verdict


@pytest.mark.parametrize("host", ["a" * 70, "a..b", "\N{SNOWMAN}." * 70])
def test_what_cannot_be_a_name_is_bad(host: str) -> None:
    with pytest.raises(Fault) as found:
        AddressFilter().resolve(host, 80)
    assert found.value.verdict is Verdict.BAD


def resolves_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
