"""Times and durations as text."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.status.times import format_datetime, format_short_datetime, precise_duration, time_zone_note


def test_a_datetime_has_seconds_and_the_time_zone_of_the_note() -> None:
    at = datetime.datetime(2026, 11, 21, 18, 41, 50, tzinfo=datetime.UTC)
    with timezone.override("Asia/Shanghai"):
        assert format_datetime(at) == "2026-11-22 02:41:50"
        assert format_short_datetime(at, at + datetime.timedelta(hours=1)) == "02:41:50"
        assert format_short_datetime(at, at + datetime.timedelta(days=1)) == format_datetime(at)
        assert time_zone_note() == "Times are shown in Asia/Shanghai (+08:00)."


def test_without_time_zone_support_the_time_zone_of_the_project_is_used(settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Shanghai"
    assert time_zone_note() == "Times are shown in Asia/Shanghai (+08:00)."


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0.00 s"), (0.123, "0.12 s"), (12, "12 s"), (7_300, "2 h"), (2 * 86_400 - 1, "48 h")],
)
def test_a_duration_is_formatted(seconds: float, said: str) -> None:
    assert precise_duration(seconds) == said
