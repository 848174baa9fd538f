"""Parsers of command-line values."""

import datetime
from argparse import ArgumentTypeError
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.exceptions import BadOption
from resourcepool.management.arguments import criteria, limit, pool_models, span
from resourcepool.management.layout import more_rows_note, one_line
from resourcepool.models import Proxy
from resourcepool.status.times import ago, timestamp_with_age
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


# Values as text.


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("as it is", "as it is"),
        (17, "17"),
        ("a\x1b[31mb\nc\td\x00", "a?[31mb?c?d?"),
        ("\u202egnp.exe", "?gnp.exe"),  # would reverse the line
        ("x" * 100, "x" * 57 + "..."),
    ],
)
def test_text_is_one_printable_line(value: object, shown: str) -> None:
    assert one_line(value) == shown


def test_what_is_not_listed_is_counted() -> None:
    assert list(more_rows_note(20, 20)) == []
    assert list(more_rows_note(20, 12_345)) == ["12,325 more; use --limit to show more"]


def test_a_moment_is_shown_with_how_long_ago_it_was() -> None:
    at = datetime.datetime(2026, 11, 21, 3, 12, 7, tzinfo=datetime.UTC)
    assert timestamp_with_age(at, 300) == f"{at:%Y-%m-%d %H:%M:%S}+00:00 (5 min ago)"
    with timezone.override("Asia/Shanghai"):
        assert "+08:00 (5 min ago)" in timestamp_with_age(at, 300)
    assert timestamp_with_age(None, None) == "unknown"
    assert (ago(None), ago(7_200)) == ("never", "2 h ago")
