"""What a resource is doing, in sentences: decided without a database."""

import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.admin.columns import format_datetime, format_duration, format_short_datetime, zone
from resourcepool.admin.describe import sentences
from resourcepool.resources.state import State

NOW = datetime.datetime(2026, 11, 21, 3, 0, tzinfo=datetime.UTC)


def at(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


def resource(**columns: Any) -> Any:
    usual = {
        "in_service": False,
        "status": "",
        "holder": "",
        "busy_before": at(-1),
        "until": None,
        "reason": "",
        "strikes": 0,
        "checked_at": None,
        "verdict": "",
    }
    return SimpleNamespace(**{**usual, **columns})


BEGUN = SimpleNamespace(at=at(-600), host="web1", pid=41, ttl=60.0)
HELD = {"holder": "db2/7/main/a.1", "busy_before": at(45)}

SAID = [
    (
        State.LEASED,
        HELD,
        BEGUN,
        [
            "Held by db2/7/main/a.1.",
            "On host web1, process 41.",
            "(10 min ago)",
            "Last renewed 15 s ago (due every 20 s).",
            "in 45 s",
        ],
    ),
    (State.LEASED, HELD, None, ["On host db2, process 7.", "Since when is not known"]),
    (State.LEASED, {**HELD, "holder": "Ann"}, None, ["Held by Ann."]),
    (
        State.DRAINING,
        {**HELD, "reason": "broken"},
        BEGUN,
        ["Held by", "until somebody returns it", "Why: broken"],
    ),
    (State.FREE, {}, None, ["Whoever asks next may get it.", "Never checked."]),
    (State.FREE, {"holder": "gone"}, None, ["of gone, ran out without being released"]),
    (State.COOLING, {"busy_before": at(30)}, None, ["handed out again in 30 s"]),
    (State.QUARANTINED, {"busy_before": at(7_300), "strikes": 3}, None, ["in 2 h", "Found bad 3 times"]),
    (State.QUARANTINED, {"status": "quarantined", "until": at(7_300)}, None, ["in 2 h"]),
    (State.OUT, {"until": at(3_600)}, None, ["Handed out no more until 2026-11-21 "]),
    (State.RESERVED, {"reason": "Ann: a demo"}, None, ["until somebody returns it", "Why: Ann: a demo"]),
    (State.RETIRED, {"until": at(60)}, None, ["until somebody returns it"]),
    (State.FREE, {"checked_at": at(-300), "verdict": "bad"}, None, ["Last check: bad, 5 min ago."]),
    (State.FREE, {"checked_at": at(-300), "verdict": "odd"}, None, ["Last check: ?, 5 min ago."]),
]


def test_what_is_quarantined_while_it_is_held_says_so() -> None:
    columns = {**HELD, "status": "quarantined", "reason": "banned", "until": at(3_600)}
    said = " ".join(sentences(resource(**columns), State.DRAINING, NOW, BEGUN))
    assert "It is quarantined as soon as its lease ends." in said
    assert "Handed out no more until 2026-11-21 " in said


def test_what_is_reserved_while_it_is_held_says_so() -> None:
    columns = {**HELD, "status": "reserved", "reason": "alice: tests"}
    said = " ".join(sentences(resource(**columns), State.DRAINING, NOW, BEGUN))
    assert "It is reserved as soon as its lease ends." in said


def test_what_is_retired_while_it_is_held_says_so() -> None:
    said = " ".join(sentences(resource(**HELD, status="retired", reason="deleted"), State.DRAINING, NOW, BEGUN))
    assert "It is retired as soon as its lease ends." in said


@pytest.mark.parametrize(
    ("state", "columns"), [(State.FREE, {}), (State.LEASED, HELD), (State.COOLING, {"busy_before": at(30)})]
)
def test_a_quarantine_that_is_over_is_no_reason_any_more(state: State, columns: dict[str, Any]) -> None:
    over = {"in_service": True, "status": "quarantined", "reason": "vendor has it", "until": at(-5), **columns}
    assert "vendor has it" not in " ".join(sentences(resource(**over), state, NOW, BEGUN))


@pytest.mark.parametrize(("state", "columns", "begun", "expected"), SAID)
def test_a_resource_is_described(
    state: State, columns: dict[str, Any], begun: Any, expected: list[str]
) -> None:
    said = " ".join(sentences(resource(**columns), state, NOW, begun))
    for part in expected:
        assert part in said


def test_a_moment_has_seconds_and_the_zone_that_the_page_tells() -> None:
    at = datetime.datetime(2026, 11, 21, 18, 41, 50, tzinfo=datetime.UTC)
    with timezone.override("Asia/Shanghai"):
        assert format_datetime(at) == "2026-11-22 02:41:50"
        assert format_short_datetime(at, at + datetime.timedelta(hours=1)) == "02:41:50"
        assert format_short_datetime(at, at + datetime.timedelta(days=1)) == format_datetime(at)
        assert zone() == "Times are shown in Asia/Shanghai (+08:00)."


def test_without_time_zones_they_are_in_that_of_the_project(settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Shanghai"
    assert zone() == "Times are shown in Asia/Shanghai (+08:00)."


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0.00 s"), (0.123, "0.12 s"), (12, "12 s"), (7_300, "2 h"), (2 * 86_400 - 1, "48 h")],
)
def test_a_span_is_spelled(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said
