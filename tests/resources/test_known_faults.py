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


@pytest.mark.parametrize("wrong", [3_600, -3_600], ids=["ahead", "behind"])
def test_a_clock_that_is_wrong_takes_nothing_that_is_held_and_leaves_nothing_free(
    monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    row, at = new(Proxy), time.time() + wrong
    before = acquired() if wrong > 0 else None
    monkeypatch.setattr(time, "time", lambda: at)
    monkeypatch.setattr(timezone, "now", lambda: datetime.datetime.fromtimestamp(at, datetime.UTC))
    holder = before or acquired(ttl=60)
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
