"""Finding resources by the names that operators use."""

from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.models import Proxy
from resourcepool.resources.registry import all_resources, select_resources
from resourcepool.resources.selectors import parse_key
from tests.app.models import Device
from tests.app.rows import new, several

pytestmark = pytest.mark.django_db


def pks(rows: Any) -> list[Any]:
    return sorted(row.pk for row in rows)


def test_by_key() -> None:
    one, _two, three = several(Proxy, 3)
    assert pks(select_resources(Proxy, [str(one.pk), str(three.pk)])) == [one.pk, three.pk]
    device = new(Device)
    assert pks(select_resources(Device, [str(device.pk)])) == [device.pk]


def test_by_key_and_selector_both_must_match() -> None:
    us, de = new(Proxy, country="US", tags="eu"), new(Proxy, country="DE", tags="eu")
    assert pks(select_resources(Proxy, [us.pk, de.pk], {"country": "DE"})) == [de.pk]
    assert (
        pks(select_resources(Proxy, (), {"country": ["US", "DE"], "tags": "eu"}))
        == pks(all_resources(Proxy))
        == pks([us, de])
    )


@pytest.mark.parametrize("text", ["0", "-1", "99999999", "9" * 30])
def test_a_key_that_no_resource_has_is_refused(text: str) -> None:
    new(Proxy)
    with pytest.raises(
        BadOption,
        match=r"is not allowed: (it must be a primary key of resourcepool.Proxy|no resourcepool.Proxy has this id)",
    ):
        select_resources(Proxy, [text])


@pytest.mark.parametrize(("model", "text"), [(Proxy, "one"), (Proxy, "1.5"), (Proxy, ""), (Device, "17")])
def test_what_is_no_key_is_refused(model: Any, text: str) -> None:
    with pytest.raises(BadOption, match="a primary key of"):
        parse_key(model, text)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(BadOption, match="no such selector"):
        select_resources(Proxy, (), {"colour": "red"})
