"""The database's clock is comparable with datetimes from querysets, also if Django reads them in another zone."""

import datetime
from collections.abc import Iterator

import pytest
from django.db import connections

from resourcepool.db.dialect import DbNow, read_clock
from resourcepool.models import Proxy
from tests.aliases import alias
from tests.app.rows import new


@pytest.fixture(params=[None, "UTC", "Asia/Shanghai", "America/New_York"])
def local(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with this TIME_ZONE."""
    with alias("local", leased=False, TIME_ZONE=request.param) as name:
        yield name


def test_it_says_what_a_queryset_says(local: str) -> None:
    new(Proxy)
    said = Proxy.objects.using(local).values_list(DbNow(), flat=True).get()
    assert abs(read_clock(connections[local]) - said) < datetime.timedelta(minutes=1)


def test_what_is_compared_with_it_is_so_for_the_database_too(local: str) -> None:
    new(Proxy, busy_before=DbNow())
    now, minute = read_clock(connections[local]), datetime.timedelta(minutes=1)
    rows = Proxy.objects.using(local)
    assert rows.filter(busy_before__gt=now - minute, busy_before__lt=now + minute).exists()
