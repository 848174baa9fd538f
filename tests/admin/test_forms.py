"""The form of an operation, without a database."""

import datetime

import pytest

from resourcepool.admin.forms import OperationForm
from resourcepool.operations import OPERATIONS

NOW = datetime.datetime(2026, 11, 21, 3, 0, tzinfo=datetime.UTC)

SPANS = [
    ({"amount": "5", "unit": "minutes"}, datetime.timedelta(minutes=5)),
    ({"amount": "30", "unit": "days"}, datetime.timedelta(days=30)),
    ({"amount": "2"}, datetime.timedelta(hours=2)),
    ({"until": "2026-11-21T03:30"}, datetime.timedelta(minutes=30)),
    ({"until": "2026-12-21T03:00"}, datetime.timedelta(days=30)),
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
    [{"until": "2026-11-21T03:00"}, {"until": "2026-12-21T03:01"}, {"amount": "100000", "unit": "days"}],
)
def test_a_duration_ends_in_the_future_and_within_thirty_days(entered: dict[str, str]) -> None:
    assert not asked("drain", **entered).is_valid()


def test_a_quarantine_needs_an_end() -> None:
    assert not asked("quarantine").is_valid()
