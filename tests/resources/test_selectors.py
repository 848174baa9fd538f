"""Selectors: conditions on resources, checked against the model."""

import datetime
import json
import uuid
from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import BadOption
from resourcepool.models import Proxy, Ticket
from resourcepool.resources.selectors import MAX_VALUES, canonical_selector
from tests.app.models import Device, Team
from tests.app.rows import new, several
from tests.eventually import InBackground, eventually


def found(model: Any, **criteria: Any) -> set[Any]:
    """Return the keys of all resources that can be acquired with this selector."""
    leases = []
    while (lease := model.pool.acquire(wait=False, **criteria)) is not None:
        leases.append(lease)
    for lease in leases:
        lease.release()
    return {lease.pk for lease in leases}


class TestChoice:
    def test_by_the_value_of_a_field(self) -> None:
        us, de = new(Proxy, country="US"), new(Proxy, country="DE")
        assert found(Proxy, country="US") == {us.pk}
        assert found(Proxy, country="DE", port=3128) == {de.pk}
        assert found(Proxy, country="FR") == set()
        assert found(Proxy) == {us.pk, de.pk}

    @pytest.mark.parametrize("values", [["US", "DE"], ("DE", "US"), {"US", "DE"}, frozenset({"US", "DE"})])
    def test_by_any_of_several_values(self, values: Any) -> None:
        us, de, _ = (new(Proxy, country=country) for country in ("US", "DE", "FR"))
        assert found(Proxy, country=values) == {us.pk, de.pk}

    def test_by_tags_all_of_which_are_wanted(self) -> None:
        both, fast = new(Proxy, tags="eu fast"), new(Proxy, tags="fast")
        new(Proxy, tags="faster slow")
        assert found(Proxy, tag="fast") == {both.pk, fast.pk}
        assert found(Proxy, tags="fast, EU") == {both.pk}
        assert found(Proxy, tags=["eu", "fast"]) == {both.pk}
        assert found(Proxy, tag="eu", tags="fast") == {both.pk}
        assert found(Proxy, tag="fas") == set()

    @pytest.mark.parametrize("tag", ["50%", "a_b", "a'b", 'a"b', "a\\b", "", "  ", None, 5, ["ok", "not ok!"]])
    def test_by_something_that_is_no_tag_is_refused(self, tag: Any) -> None:
        if tag == "a_b":
            new(Proxy, tags="axb")
            assert found(Proxy, tag=tag) == set()
            return
        with pytest.raises(BadOption, match=r"tag=.* is not allowed: it must be words of 1 to 50"):
            Proxy.pool.acquire(wait=False, tag=tag)

    def test_by_a_foreign_key(self) -> None:
        team = Team.objects.create(name="crawl")
        ours = new(Device, owner=team)
        nobodys = new(Device)
        assert found(Device, owner=team) == found(Device, owner=team.pk) == {ours.pk}
        assert found(Device, owner=None) == {nobodys.pk}

    def test_by_choices_booleans_dates_and_keys(self) -> None:
        tablet = new(Device, kind="tablet", is_rooted=True, bought_on=datetime.date(2024, 2, 29))
        new(Device)
        for wish in (
            {"kind": "tablet"},
            {"kind": Device.Kind.TABLET},
            {"is_rooted": True},
            {"bought_on": datetime.date(2024, 2, 29)},
            {"bought_on": "2024-02-29"},
            {"id": tablet.pk},
            {"id": str(tablet.pk)},
            {"id": [tablet.pk, uuid.uuid4()]},
        ):
            assert found(Device, **wish) == {tablet.pk}, wish

    def test_of_a_text_key_is_exact(self) -> None:
        lower, upper = new(Device, name="pixel"), new(Device, name="Pixel")
        assert found(Device, name="pixel") == {lower.pk}
        assert found(Device, name="Pixel") == {upper.pk}

    def test_while_waiting(self) -> None:
        new(Proxy, country="DE")
        wanted = new(Proxy, country="US")
        with Proxy.pool.lease(country="US") as lease:
            waiter = InBackground(lambda: Proxy.pool.acquire(timeout=10, country="US", tag="fast"))
            eventually(Ticket.objects.exists)
            Proxy.objects.filter(pk=lease.pk).update(tags=" fast ")
        assert waiter.result().pk == wanted.pk


class TestRefusal:
    def test_of_an_unknown_one_lists_what_there_is(self) -> None:
        with pytest.raises(BadOption) as caught:
            Proxy.pool.acquire(city="Berlin")
        assert str(caught.value) == (
            "city: no such selector; resourcepool.Proxy has: "
            "country, host, id, notes, port, scheme, tags, username, weight"
        )

    @pytest.mark.parametrize(
        "name", ["busy_before", "fence", "in_service", "status", "strikes", "pk", "port__gt"]
    )
    def test_of_what_is_not_for_choosing(self, name: str) -> None:
        with pytest.raises(BadOption, match=rf"^{name}: no such selector; "):
            Proxy.pool.acquire(**{name: 1})

    def test_of_a_secret_does_not_show_it(self) -> None:
        with pytest.raises(BadOption) as caught:
            Proxy.pool.acquire(password="canary-4711")
        assert "canary" not in str(caught.value) + repr(caught.value) + str(vars(caught.value))

    @pytest.mark.parametrize(
        ("name", "value", "allowed"),
        [
            ("port", "many", "a value for PositiveIntegerField port"),
            ("port", None, "a value for PositiveIntegerField port"),
            ("port", True, "a value for PositiveIntegerField port"),
            ("port", [], f"1 to {MAX_VALUES} values"),
            ("port", [1, "many"], "a value for PositiveIntegerField port"),
            ("port", list(range(1, MAX_VALUES + 2)), f"1 to {MAX_VALUES} values"),
            ("port", 70_000, "a value for PositiveIntegerField port"),
            ("port", 10**30, "a value for PositiveIntegerField port"),
            ("scheme", "ftp", "one of 'http', 'https', 'socks5', 'socks5h'"),
        ],
    )
    def test_of_a_value_that_the_field_does_not_take(self, name: str, value: Any, allowed: str) -> None:
        with pytest.raises(BadOption) as caught:
            Proxy.pool.acquire(**{name: value})
        assert str(caught.value).endswith(f" is not allowed: it must be {allowed}")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("slots", 1.5),
            ("slots", float("nan")),
            ("slots", float("inf")),
            ("is_rooted", "yes please"),
            ("is_rooted", 1),
            ("bought_on", "tomorrow"),
            ("id", "not-a-uuid"),
            ("owner", "somebody"),
            ("kind", "PHONE"),
            ("name", "a\0b"),
            ("name", None),
        ],
    )
    def test_of_values_of_another_type(self, name: str, value: Any) -> None:
        new(Device)
        with pytest.raises(BadOption, match=f"^{name}="):
            Device.pool.acquire(wait=False, **{name: value})


class TestCanonical:
    @pytest.mark.parametrize(
        ("one", "same"),
        [
            ({}, {}),
            ({"country": "US", "port": 80}, {"port": "80", "country": "US"}),
            ({"country": ["US", "DE"]}, {"country": {"DE", "US"}}),
            ({"country": ["US", "US", "DE"]}, {"country": ["DE", "US"]}),
            ({"tags": "fast eu"}, {"tag": ["EU", "fast"]}),
            ({"tags": "fast,eu"}, {"tag": "eu", "tags": ["fast"]}),
        ],
    )
    def test_equal_wishes_have_equal_text(self, one: Any, same: Any) -> None:
        assert canonical_selector(Proxy, one) == canonical_selector(Proxy, same)

    def test_different_wishes_have_different_text(self) -> None:
        criteria = [{}, {"country": "US"}, {"country": ["US"]}, {"country": "us"}, {"port": 80}, {"tags": "us"}]
        assert len({canonical_selector(Proxy, wish) for wish in criteria}) >= 5

    def test_is_json_that_others_can_read(self) -> None:
        key = uuid.uuid4()
        assert json.loads(canonical_selector(Device, {"id": key, "bought_on": datetime.date(2024, 1, 2)})) == {
            "id": str(key),
            "bought_on": "2024-01-02",
        }


class TestForeignTickets:
    """Another version of the program, or another program, may wait in the same line."""

    @pytest.mark.parametrize(
        "selector",
        ['{"colour": "red"}', '{"port": "many"}', '{"port": [1, {}]}', "[]", "no json", '{"tags": 5}', "null"],
    )
    def test_that_nobody_here_understands_hold_up_nobody(self, selector: str) -> None:
        new(
            Ticket,
            pool="resourcepool.proxy",
            selector=selector,
            busy_before=DbLater(30),
            fence=1,
            holder="stranger",
        )
        several(Proxy, 2)
        assert Proxy.pool.acquire(wait=False) is not None
        assert Proxy.pool.acquire(timeout=5) is not None
