"""Values as text."""

import datetime

import pytest
from django.utils import timezone

from resourcepool.management.layout import more_rows_note, one_line
from resourcepool.status.times import ago, timestamp_with_age


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
