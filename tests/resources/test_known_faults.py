"""The faults of the article that this project began with (docs/internals/origins.md): this project has none of them."""

import datetime
import os
import time
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction
from django.utils import timezone

from resourcepool import Resource
from resourcepool.exceptions import LeaseLost
from resourcepool.leases import verbs
from resourcepool.models import Proxy
from tests.app.rows import busy_for, change, columns, expire, granted, lasts, new, several, steal
from tests.eventually import at_once, eventually

pytestmark = pytest.mark.usefixtures("transactional_db")


def acquired(**criteria: Any) -> Any:
    lease = Proxy.pool.acquire(wait=False, **criteria)
    assert lease is not None
    return lease


def test_a_late_release_leaves_the_successor_alone() -> None:
    row = new(Proxy)
    late = acquired()
    expire(row)
    successor = acquired()
    before = columns(row)
    with pytest.raises(LeaseLost):
        late.release()
    assert columns(row) == before
    assert Proxy.pool.acquire(wait=False) is None
    successor.renew()


def test_a_late_verdict_leaves_the_successor_alone() -> None:
    row = new(Proxy)
    late = acquired()
    expire(row)
    successor = acquired()
    before = columns(row)
    with pytest.raises(LeaseLost):
        late.quarantine("found bad too late")
    assert columns(row) == before
    successor.renew()


def test_a_row_that_was_never_held_is_found() -> None:
    row = new(Proxy)
    assert acquired().pk == row.pk


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


def test_two_grants_within_a_second_have_two_fences() -> None:
    row = new(Proxy)
    first = acquired()
    expire(row)
    second = acquired()
    change(row, busy_before=columns(row)["busy_before"] + datetime.timedelta(0))
    with pytest.raises(LeaseLost):
        first.renew()
    second.renew()


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


def test_a_holder_is_told_of_a_loss_three_times() -> None:
    """By the event, the callback and the next call."""
    told: list[Any] = []
    row = new(Proxy)
    lease = acquired(on_lost=told.append)
    steal(row)
    with pytest.raises(LeaseLost):
        lease.renew()
    assert lease.lost.is_set()
    eventually(lambda: told == [lease])
    with pytest.raises(LeaseLost):
        lease.ensure_held()


def test_a_thread_that_lost_its_resource_says_what_it_moved_to() -> None:
    changes: list[Any] = []
    several(Proxy, 2)

    class RecordingResource(Resource):
        model = Proxy
        occupation_interval = 0.05

        def is_valid(self) -> bool:
            return True

    kept = RecordingResource(on_change=lambda old, new: changes.append((old, new)))
    kept.start()
    lost = kept.o
    steal(lost)
    eventually(lambda: changes == [(lost, kept.o)])
    kept.terminate()
    kept.join(60)


def test_eight_at_once_get_eight_rows() -> None:
    several(Proxy, 8)
    leases = at_once(8, lambda _: acquired())
    assert len({lease.pk for lease in leases}) == 8
    for lease in leases:
        lease.release()


def test_a_random_row_is_not_the_same_one_every_time() -> None:
    several(Proxy, 8)
    first: set[Any] = set()
    for _ in range(40):
        with acquired(strategy="random") as lease:
            first.add(lease.pk)
    assert len(first) > 1


def test_who_holds_a_row_is_in_the_row() -> None:
    new(Proxy)
    acquired()
    (holder,) = Proxy.objects.held().values_list("holder", flat=True)
    assert f"/{os.getpid()}/" in holder


def test_a_selector_is_a_value_and_never_sql() -> None:
    new(Proxy, notes="not called x")
    assert Proxy.pool.acquire(wait=False, notes="x' OR '1' = '1") is None


def test_a_quarantine_begins_with_minutes_and_a_reason() -> None:
    row = new(Proxy)
    acquired().quarantine("is_valid() returned False")
    assert 290 < busy_for(row) < 376
    assert columns(row)["reason"] == "is_valid() returned False"
