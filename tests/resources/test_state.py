"""The state of a row at one moment, computed without a database."""

import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from resourcepool.resources.state import State, Status, state_details

NOW = datetime.datetime(2026, 11, 21, 3, 0, tzinfo=datetime.UTC)
BEFORE, LATER = NOW - datetime.timedelta(seconds=1), NOW + datetime.timedelta(days=2)
PARKED = {"in_service": True, "status": Status.QUARANTINED, "reason": "vendor has it"}
AFTER = {**PARKED, "in_service": False}  # it was put there while it was held
OUT = {"in_service": False, "status": Status.OUT_OF_SERVICE, "reason": "new cable", "holder": ""}


@pytest.mark.parametrize(
    ("row", "state", "holds"),
    [
        ({**PARKED, "busy_before": LATER, "until": LATER, "holder": ""}, State.QUARANTINED, True),
        ({**PARKED, "busy_before": LATER, "until": LATER, "holder": "a check"}, State.LEASED, True),
        ({**PARKED, "busy_before": BEFORE, "until": BEFORE, "holder": ""}, State.FREE, False),
        ({**PARKED, "busy_before": LATER, "until": BEFORE, "holder": "me"}, State.LEASED, False),
        ({**PARKED, "busy_before": LATER, "until": BEFORE, "holder": ""}, State.COOLING, False),
        ({**PARKED, "busy_before": LATER, "until": NOW, "holder": ""}, State.COOLING, False),
        ({**AFTER, "busy_before": LATER, "until": LATER, "holder": "me"}, State.DRAINING, True),
        ({**AFTER, "busy_before": BEFORE, "until": LATER, "holder": ""}, State.QUARANTINED, True),
        ({**AFTER, "busy_before": BEFORE, "until": LATER, "holder": "a dead one"}, State.QUARANTINED, True),
        ({**OUT, "busy_before": BEFORE, "until": None}, State.OUT, True),
        ({**OUT, "busy_before": BEFORE, "until": BEFORE}, State.OUT, True),  # until a sweep returns it
    ],
)
def test_a_reason_holds_until_its_quarantine_is_over(row: dict[str, Any], state: State, holds: bool) -> None:
    now = state_details(SimpleNamespace(**row), NOW)
    assert now.state is state
    kept = (row["status"], row["reason"], row["until"])
    assert (now.status, now.reason, now.until) == (kept if holds else (Status.IN_SERVICE, "", None))
