"""Descriptions of resources, without a database."""

import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.admin.describe import sentences
from resourcepool.resources.state import State
from resourcepool.status.times import format_datetime, format_short_datetime, precise_duration, time_zone_note

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
    (State.LEASED, HELD, None, ["On host db2, process 7.", "Start unknown"]),
    (State.LEASED, {**HELD, "holder": "Ann"}, None, ["Held by Ann."]),
    (
        State.DRAINING,
        {**HELD, "reason": "broken"},
        BEGUN,
        ["Held by", "until someone returns it", "Reason: broken"],
    ),
    (State.FREE, {}, None, ["The next request may get it.", "Never checked."]),
    (State.FREE, {"holder": "gone"}, None, ["held by gone, expired without a release"]),
    (State.COOLING, {"busy_before": at(30)}, None, ["leased again in 30 s"]),
    (State.QUARANTINED, {"busy_before": at(7_300), "strikes": 3}, None, ["in 2 h", "Quarantined 3 times"]),
    (State.QUARANTINED, {"status": "quarantined", "until": at(7_300)}, None, ["in 2 h"]),
    (State.OUT, {"until": at(3_600)}, None, ["Cannot be leased until 2026-11-21 "]),
    (State.RESERVED, {"reason": "Ann: a demo"}, None, ["until someone returns it", "Reason: Ann: a demo"]),
    (State.RETIRED, {"until": at(60)}, None, ["until someone returns it"]),
    (State.FREE, {"checked_at": at(-300), "verdict": "bad"}, None, ["Last check: bad, 5 min ago."]),
    (State.FREE, {"checked_at": at(-300), "verdict": "odd"}, None, ["Last check: ?, 5 min ago."]),
]


def test_a_held_resource_quarantined_after_its_lease_is_described() -> None:
    columns = {**HELD, "status": "quarantined", "reason": "banned", "until": at(3_600)}
    said = " ".join(sentences(resource(**columns), State.DRAINING, NOW, BEGUN))
    assert "It will be quarantined when its lease ends." in said
    assert "Cannot be leased until 2026-11-21 " in said


def test_a_held_resource_reserved_after_its_lease_is_described() -> None:
    columns = {**HELD, "status": "reserved", "reason": "alice: tests"}
    said = " ".join(sentences(resource(**columns), State.DRAINING, NOW, BEGUN))
    assert "It will be reserved when its lease ends." in said


def test_a_held_resource_retired_after_its_lease_is_described() -> None:
    said = " ".join(sentences(resource(**HELD, status="retired", reason="deleted"), State.DRAINING, NOW, BEGUN))
    assert "It will be retired when its lease ends." in said


@pytest.mark.parametrize(
    ("state", "columns"), [(State.FREE, {}), (State.LEASED, HELD), (State.COOLING, {"busy_before": at(30)})]
)
def test_the_reason_of_an_ended_quarantine_is_not_shown(state: State, columns: dict[str, Any]) -> None:
    over = {"in_service": True, "status": "quarantined", "reason": "vendor has it", "until": at(-5), **columns}
    assert "vendor has it" not in " ".join(sentences(resource(**over), state, NOW, BEGUN))


@pytest.mark.parametrize(("state", "columns", "begun", "expected"), SAID)
def test_a_resource_is_described(
    state: State, columns: dict[str, Any], begun: Any, expected: list[str]
) -> None:
    said = " ".join(sentences(resource(**columns), state, NOW, begun))
    for part in expected:
        assert part in said


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
