"""Parsers of command-line values."""

from argparse import ArgumentTypeError
from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.management.arguments import criteria, limit, pool_models, span
from resourcepool.models import Proxy
from tests.app.models import Device


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("15 min", 900), ("2h", 7_200), ("1.5h", 5_400), ("7D", 604_800)],
)
def test_a_span_of_time(text: str, seconds: float) -> None:
    assert span(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "2w", "-1h", "1h30m", "inf", "nan", "1e9"])
def test_no_span_of_time(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="write 90s, 15m, 2h or 7d"):
        span(text)


@pytest.mark.parametrize("text", ["0", "-1", "10001", "many", "²", "", "9" * 5_000])
def test_no_limit(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="whole number from 1 to 10000"):
        limit(text)


@pytest.mark.parametrize(
    ("tags", "conditions", "found"),
    [
        ([], [], {}),
        (["eu", "fast"], [], {"tags": ["eu", "fast"]}),
        (["eu"], ["tag=fast,new"], {"tags": ["eu", "fast", "new"]}),
        ([], ["name=a=b"], {"name": "a=b"}),
        ([], ["kind=phone", "kind=tablet"], {"kind": ["phone", "tablet"]}),
        ([], ["is_rooted=Yes"], {"is_rooted": True}),
        ([], ["is_rooted=0"], {"is_rooted": False}),
        ([], ["bought_on="], {"bought_on": None}),
        ([], ["notes="], {"notes": ""}),
    ],
)
def test_selectors(tags: list[str], conditions: list[str], found: dict[str, Any]) -> None:
    assert criteria(Device, tags, conditions) == found


@pytest.mark.parametrize("condition", ["country", "=US", ""])
def test_no_selector(condition: str) -> None:
    with pytest.raises(BadOption, match="FIELD=VALUE, such as country=US"):
        criteria(Proxy, [], [condition])


def test_a_pool_by_its_name_or_all_of_them() -> None:
    assert pool_models("proxy") == pool_models("resourcepool.Proxy") == [Proxy]
    assert {Proxy, Device} <= set(pool_models(None))
