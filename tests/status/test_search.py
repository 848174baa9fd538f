"""Search for resources and holders by a text."""

from typing import Any

import pytest

from resourcepool.models import Proxy
from resourcepool.resources.registry import resource_models
from resourcepool.status.search import Matches, find, without_password
from tests.app.models import Device
from tests.app.rows import expire, hold, new
from tests.waiting.threads import ticket


def found(text: str, limit: int = 10) -> Matches:
    return find(text, resource_models(), limit)


def rows(text: str) -> set[Any]:
    return {row.pk for row in found(text).resources}


@pytest.fixture
def proxies() -> dict[str, Any]:
    return {
        "one": new(Proxy, host="10.0.0.1", port=3128),
        "ten": new(Proxy, host="10.0.0.10", port=3128),
        "joe": new(Proxy, host="10.0.0.10", port=3128, username="joe"),
        "six": new(Proxy, host="2001:db8::1", port=1080),
    }


class TestAResource:
    def test_by_key(self, proxies: dict[str, Any]) -> None:
        device = new(Device)
        assert rows(str(proxies["ten"].pk)) == {proxies["ten"].pk}
        assert rows(str(device.pk)) == {device.pk}

    def test_by_name_before_by_part_of_it(self) -> None:
        phone, _second = new(Device, name="phone 1"), new(Device, name="phone 12")
        assert rows("phone 1") == {phone.pk}
        assert len(rows("phone")) == 2

    def test_by_address(self, proxies: dict[str, Any]) -> None:
        assert rows("10.0.0.1:3128") == {proxies["one"].pk}
        assert rows("10.0.0.1") == {proxies["one"].pk}
        assert rows("joe@10.0.0.10:3128") == {proxies["joe"].pk}
        assert rows("http://[2001:db8::1]:1080") == {proxies["six"].pk}
        assert rows("2001:db8::1") == {proxies["six"].pk}
        assert rows("10.0.0.10:3128") == {proxies["ten"].pk, proxies["joe"].pk}

    def test_a_number_is_no_weight_and_too_large_a_one_no_error(self, proxies: dict[str, Any]) -> None:
        assert rows("99999999999999999999999999") == set()
        assert rows("3128") == {one.pk for name, one in proxies.items() if name != "six"}


class TestAHolder:
    def test_by_name_host_or_part_of_it(self) -> None:
        hold(new(Proxy), holder="crawler3/77/MainThread/a.1")
        ticket(Proxy, holder="crawler33/77/MainThread/b.1")
        assert found("crawler3/77/MainThread/a.1").holders == ["crawler3/77/MainThread/a.1"]
        assert found("crawler3").holders == ["crawler3/77/MainThread/a.1"]
        assert found("crawler3/77").holders == ["crawler3/77/MainThread/a.1"]
        assert len(found("crawler").holders) == 2

    def test_who_has_gone_is_not_found(self) -> None:
        proxy = new(Proxy)
        hold(proxy, holder="me")
        expire(proxy)
        ticket(Proxy, holder="me", seconds=-1)
        assert found("me").holders == []

    def test_once_however_much_it_holds(self) -> None:
        for model in (Proxy, Proxy, Device):
            hold(new(model), holder="me")
        assert found("me").holders == ["me"]


def test_only_so_many_are_found() -> None:
    for number in range(4):
        new(Proxy, host=f"h{number}.example.net")
    assert len(found("example.net", 3).resources) == 3
    assert found("example.net", 3).more
    assert not found("example.net", 4).more


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("http://joe:secret@h.example:80", "joe@h.example:80"),
        ("h.example:80:joe:secret", "joe@h.example:80"),
        ("joe:secret@h.example:80", "joe@h.example:80"),
        ("http://joe:secret@h.example", "http://joe@h.example"),
        ("http://joe:se/secret@h.example:80", "http://h.example:80"),
        ("crawler3/77/MainThread/a.1", "crawler3/77/MainThread/a.1"),
        ("10.0.0.1:3128", "10.0.0.1:3128"),
    ],
)
def test_a_password_is_left_out(text: str, plain: str) -> None:
    assert without_password(text).endswith(plain)
    assert "secret" not in without_password(text)
