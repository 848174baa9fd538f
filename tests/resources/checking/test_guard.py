"""Checks are not sent into this host's own network."""

import socket
from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.resources.checking.fault import Fault, NotPublic
from resourcepool.resources.checking.guard import Guard
from resourcepool.resources.state import Verdict

PUBLIC = ["8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
INSIDE = [
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "240.0.0.1",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "fec0::1",
    "64:ff9b:1::7f00:1",
    "::127.0.0.1",
    "::10.0.0.5",
    "::ffff:0:127.0.0.1",
    "::5efe:7f00:1",
    "168.63.129.16",
    "::ffff:168.63.129.16",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_spoken_to(address: str) -> None:
    Guard().check(address, address)


@pytest.mark.parametrize("address", INSIDE)
def test_others_are_not(address: str) -> None:
    with pytest.raises(NotPublic) as refused:
        Guard().check(address, address)
    assert refused.value.verdict is Verdict.UNKNOWN  # it says nothing about the proxy


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
    Guard([entry]).check(host, address)
    with pytest.raises(NotPublic):
        Guard([entry]).check("other", "192.168.1.1")


@pytest.mark.parametrize("allow", ["10.0.0.0/8", [10], ["10.0.0.0/33"], ["a/b"]])
def test_what_is_no_network_is_named(allow: Any) -> None:
    with pytest.raises(BadOption, match="allow"):
        Guard(allow)


def test_a_name_is_refused_if_any_of_its_addresses_is(monkeypatch: pytest.MonkeyPatch) -> None:
    resolves_to(monkeypatch, "8.8.8.8", "127.0.0.1")
    with pytest.raises(NotPublic, match=r"rebind.example \(127.0.0.1\) is not a public address"):
        Guard().resolve("rebind.example", 80)
    assert [address for _, address in Guard(["127.0.0.0/8"]).resolve("rebind.example", 80)] == [
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
        Guard().resolve("p.example", 80)
    assert found.value.verdict is verdict


@pytest.mark.parametrize("host", ["a" * 70, "a..b", "\N{SNOWMAN}." * 70])
def test_what_cannot_be_a_name_is_bad(host: str) -> None:
    with pytest.raises(Fault) as found:
        Guard().resolve(host, 80)
    assert found.value.verdict is Verdict.BAD


def resolves_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
