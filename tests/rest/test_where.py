"""``where`` on a project's own columns: invalid values are refused, whatever JSON allows."""

from typing import Any

import pytest
from django.db import models
from django.test.utils import isolate_apps

from resourcepool.exceptions import BadOption
from resourcepool.models import AbstractResource
from resourcepool.resources.selectors import canonical_selector
from tests.app.models import Device
from tests.app.rows import new
from tests.rest.conftest import Caller

TRAITS = [{"size": 5, "colour": "red"}, {"size": 6}, ["a", "b"], "plain", 7]


@pytest.fixture
def phones(db: None) -> list[Any]:
    return [new(Device, name=f"phone {number}", traits=traits) for number, traits in enumerate(TRAITS)]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([{"size": 5, "colour": "red"}], [0]),
        ([{"size": 6}, {"size": 6}, {"size": 9}], [1]),
        ([{"size": 6}, {"size": 5, "colour": "red"}], [0, 1]),
        ({"size": 6}, [1]),
        ([["a", "b"]], [2]),
        ([["a", "b"], {"size": 6}, "plain", 7], [1, 2, 3, 4]),
        ([{"size": 7}], []),
    ],
    ids=str,
)
def test_a_json_column_is_one_of_several_values(
    root: Caller, phones: Any, wanted: Any, found: list[int]
) -> None:
    got = [root.got("pools/device/acquire", where={"traits": wanted})["id"] for _ in found]
    assert sorted(got) == sorted(str(phones[number].pk) for number in found)
    assert root.post("pools/device/acquire", where={"traits": wanted}).status_code == 423


@pytest.mark.parametrize("wanted", ["\0", {"a": "x\0"}, {"a\0": 1}, [{"a": ["\0"]}], [["\0"]]], ids=repr)
def test_nul_in_json_is_refused(root: Caller, phones: Any, wanted: Any) -> None:
    answer = root.post("pools/device/acquire", where={"traits": wanted})
    assert (answer.status_code, answer.json()["name"]) == (400, "traits")


def test_text_that_looks_like_nul_in_json_is_none(root: Caller, phones: Any) -> None:
    assert root.post("pools/device/acquire", where={"traits": {"a": "\\u0000"}}).status_code == 423


@pytest.mark.parametrize("depth", [10, 48, 49, 50, 51, 100, 500, 900, 950, 980, 1_000])
def test_lists_in_lists_in_a_json_column(root: Caller, phones: Any, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    answer = root.send("pools/device/acquire", f'{{"where": {{"traits": [{nested}]}}}}')
    assert answer.status_code in (400, 423)


@isolate_apps("tests.app")
def test_a_column_of_bytes_is_no_json() -> None:
    class Photo(AbstractResource):
        data = models.BinaryField(editable=True)

        class Meta(AbstractResource.Meta):
            app_label = "testapp"

    with pytest.raises(BadOption, match="data="):
        canonical_selector(Photo, {"data": "aGk="})
