"""Datetimes from columns, with any time zone of the project, aware or naive."""

import datetime
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from resourcepool.admin.forms import OperationForm
from resourcepool.db.dialect import DbNow, read_clock
from resourcepool.models import Event
from resourcepool.operations import OPERATIONS
from resourcepool.status.snapshots import as_data
from resourcepool.status.times import format_datetime, local_time, with_zone

SOON, HOUR = datetime.timedelta(minutes=5), datetime.timedelta(hours=1)


@pytest.fixture(params=[(True, "UTC"), (True, "Asia/Shanghai"), (False, "UTC"), (False, "Asia/Shanghai")])
def event(request: pytest.FixtureRequest, settings: Any) -> Event:
    """A new event."""
    settings.USE_TZ, settings.TIME_ZONE = request.param
    pk = Event.objects.create(at=DbNow(), what="acquired", pool="p", row="1").pk
    return Event.objects.get(pk=pk)


def test_they_are_shown_in_the_projects_zone(event: Event) -> None:
    now = datetime.datetime.now(datetime.UTC).astimezone(timezone.get_default_timezone())
    assert abs(with_zone(event.at) - now) < SOON
    assert abs(datetime.datetime.fromisoformat(format_datetime(event.at)) - now.replace(tzinfo=None)) < SOON
    assert abs(datetime.datetime.fromisoformat(local_time(event.at)) - now) < SOON


def test_as_json_they_have_a_zone(event: Event) -> None:
    now = datetime.datetime.now(datetime.UTC)
    assert abs(datetime.datetime.fromisoformat(as_data(event.at)) - now) < SOON


@pytest.mark.usefixtures("event")
def test_an_end_is_entered_in_the_projects_zone() -> None:
    end = datetime.datetime.now(timezone.get_default_timezone()) + HOUR
    data = {"reason": "r", "duration": f"{end:%Y-%m-%d %H:%M}"}
    form = OperationForm(data, operation=OPERATIONS["drain"], now=lambda: read_clock(connection))
    assert form.is_valid(), form.errors
    assert abs(form.cleaned_data["duration"] - HOUR.total_seconds()) < SOON.total_seconds()
