"""The faults of the article that this project began with (docs/internals/origins.md): this project has none of them."""

import datetime
import time
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction
from django.utils import timezone

from resourcepool.leases import verbs
from resourcepool.models import Proxy
from tests.app.rows import granted, lasts, new

pytestmark = pytest.mark.usefixtures("transactional_db")


def acquired(**criteria: Any) -> Any:
    lease = Proxy.pool.acquire(wait=False, **criteria)
    assert lease is not None
    return lease


def test_busy_before_is_never_null() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        new(Proxy, busy_before=None)


def test_a_clock_that_is_ahead_takes_nothing_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    new(Proxy)
    holder = acquired()
    at = time.time()
    monkeypatch.setattr(time, "time", lambda: at + 3_600)
    monkeypatch.setattr(timezone, "now", lambda: datetime.datetime.fromtimestamp(at + 3_600, datetime.UTC))
    assert Proxy.pool.acquire(wait=False) is None
    holder.renew()


def test_a_clock_that_is_behind_leaves_nothing_free_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    row = new(Proxy)
    at = time.time()
    monkeypatch.setattr(time, "time", lambda: at - 3_600)
    monkeypatch.setattr(timezone, "now", lambda: datetime.datetime.fromtimestamp(at - 3_600, datetime.UTC))
    holder = acquired(ttl=60)
    assert lasts(row, 60)
    assert Proxy.pool.acquire(wait=False) is None
    holder.renew()


@pytest.fixture
def counting_changes() -> Any:
    """A connection on which an UPDATE that changes nothing has changed no row: MySQL's own way to count.

    Django asks for another one, but a project that sets ``client_flag`` gets this one.
    """
    own: Any = connections.create_connection("default")
    options = {**own.settings_dict["OPTIONS"], "client_flag": 0}
    own.settings_dict = {**own.settings_dict, "OPTIONS": options}
    yield own
    own.close()


@pytest.mark.only("mysql")
def test_two_renewals_within_a_second_count(counting_changes: Any) -> None:
    row = new(Proxy)
    grant = granted(row)
    for _ in range(5):
        assert verbs.renew(counting_changes, Proxy, [(row.pk, grant.fence)], 60) == 1


def test_a_selector_is_a_value_and_never_sql() -> None:
    new(Proxy, notes="not called x")
    assert Proxy.pool.acquire(wait=False, notes="x' OR '1' = '1") is None
