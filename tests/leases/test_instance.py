"""A row is read like Django reads it, whatever its columns are."""

import datetime
from typing import Any

import pytest
from django.db import connection, models
from django.utils import timezone

from resourcepool.leases.statements import instance
from resourcepool.models import Proxy
from tests.app.models import Device, Team
from tests.app.rows import new

pytestmark = pytest.mark.usefixtures("by_name")  # elsewhere texts are sent


def values(one: models.Model) -> dict[str, Any]:
    return {field.attname: getattr(one, field.attname) for field in one._meta.concrete_fields}


def test_an_instance_is_the_one_that_django_reads(row: Any) -> None:
    model = type(row)
    read, usual = instance(connection, model, row.pk), model._base_manager.get(pk=row.pk)
    assert type(read) is model
    assert values(read) == values(usual)
    assert (read._state.db, read._state.adding) == ("default", False)
    assert read == usual


def test_each_kind_of_column_is_converted() -> None:
    team = Team.objects.create(name="field team")
    now, day = timezone.now(), datetime.date(2026, 2, 3)
    several = {"tags": "eu fast", "until": now, "struck_at": now, "latency": 0.25, "reason": "slow"}
    made = new(Device, owner=team, pin="1234", is_rooted=True, bought_on=day, **several)
    read = instance(connection, Device, made.pk)
    assert values(read) == values(Device._base_manager.get(pk=made.pk))
    assert (read.owner, read.pin, read.is_rooted, read.bought_on) == (team, "1234", True, day)


def test_there_is_none_without_a_row() -> None:
    made = new(Proxy)
    Proxy.objects.all().delete()
    assert instance(connection, Proxy, made.pk) is None


def test_what_was_read_can_be_changed_and_saved() -> None:
    read = instance(connection, Proxy, new(Proxy).pk)
    read.notes = "in the cellar"
    read.save()
    assert Proxy.objects.get(pk=read.pk).notes == "in the cellar"
