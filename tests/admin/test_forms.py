"""The form of an operation, without a database."""

import datetime

import pytest

from resourcepool.admin.forms import OperationForm
from resourcepool.operations import OPERATIONS

NOW = datetime.datetime(2026, 11, 21, 3, 0, tzinfo=datetime.UTC)

SPANS = [
    ({"duration": "5m"}, datetime.timedelta(minutes=5)),
    ({"duration": "30 d"}, datetime.timedelta(days=30)),
    ({"duration": "1.5h"}, datetime.timedelta(minutes=90)),
    ({"duration": "90"}, datetime.timedelta(seconds=90)),
    ({"duration": "2026-11-21 03:30"}, datetime.timedelta(minutes=30)),
    ({"duration": "2026-12-21T03:00"}, datetime.timedelta(days=30)),
    ({"duration": "03:30"}, datetime.timedelta(minutes=30)),
    ({"duration": "02:00"}, datetime.timedelta(hours=23)),
    ({}, None),
]


def asked(name: str, **entered: str) -> OperationForm:
    return OperationForm({"reason": "r", **entered}, operation=OPERATIONS[name], now=lambda: NOW)


@pytest.mark.parametrize(("entered", "expected"), SPANS)
def test_a_duration_is_computed(entered: dict[str, str], expected: datetime.timedelta | None) -> None:
    form = asked("drain", **entered)
    assert form.is_valid(), form.errors
    assert form.cleaned_data["duration"] == (expected and expected.total_seconds())


@pytest.mark.parametrize(
    "entered",
    ["2026-11-21T03:00", "2026-12-21T03:01", "100000d", "0m", "-5m", "5 weeks", "25:00", "2026-13-01 00:00"],
)
def test_a_duration_ends_in_the_future_and_within_thirty_days(entered: str) -> None:
    form = asked("drain", duration=entered)
    assert not form.is_valid()
    assert "duration" in form.errors


def test_a_quarantine_needs_an_end() -> None:
    assert not asked("quarantine").is_valid()


def test_the_own_name_is_filled_in_and_the_next_field_is_focused() -> None:
    form = OperationForm(operation=OPERATIONS["reserve"], now=lambda: NOW, actor="maria")
    assert form.initial.get("name", form.fields["name"].initial) == "maria"
    assert "autofocus" in str(form["reason"])
    assert "autofocus" not in str(form["name"])
