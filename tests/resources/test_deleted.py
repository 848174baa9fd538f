"""A held resource whose row is deleted directly, without being retired."""

import asyncio
from typing import Any

import pytest

from resourcepool.exceptions import LeaseLost, LeaseReleased
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources.lease import ResourceLease
from resourcepool.waiting.poll import poller_on
from tests.app.rows import new, several
from tests.eventually import closing
from tests.resources.busy_thread import soon
from tests.resources.recording_resource import Changes


def delete(*rows: Any) -> None:
    Proxy.objects.filter(pk__in=[row.pk for row in rows])._raw_delete("default")


class TestItsLease:
    def test_is_lost_as_soon_as_the_resource_is_asked_for(self) -> None:
        told: list[Any] = []
        row = new(Proxy)
        lease: Any = Proxy.pool.acquire(on_lost=told.append)
        delete(row)
        for _ in range(2):
            with pytest.raises(LeaseLost, match="its row was deleted"):
                lease.resource  # noqa: B018 (reads it)
        assert lease.lost.is_set()
        assert not keeper.is_renewing(lease)

    def test_that_was_released_before_says_so(self) -> None:
        row = new(Proxy)
        lease: Any = Proxy.pool.acquire()
        lease.release()
        delete(row)
        with pytest.raises(LeaseReleased):
            lease.resource  # noqa: B018

    def test_goes_on_with_what_was_read_before(self) -> None:
        row = new(Proxy)
        lease: Any = Proxy.pool.acquire()
        assert lease.resource.pk == row.pk
        delete(row)
        assert lease.resource.pk == row.pk

    @pytest.mark.parametrize("give_up", [ResourceLease.release, lambda lease: lease.quarantine("bad")])
    def test_is_lost_to_who_gives_it_up(self, give_up: Any) -> None:
        row = new(Proxy)
        lease: Any = Proxy.pool.acquire()
        delete(row)
        with pytest.raises(LeaseLost):
            give_up(lease)

    def test_is_lost_to_who_acquires_in_asyncio(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Deleted between the claim and reading the row."""
        row, load = new(Proxy), ResourceLease._load
        monkeypatch.setattr(ResourceLease, "_load", lambda lease: (delete(row), load(lease)))
        with pytest.raises(LeaseLost):
            asyncio.run(Proxy.pool.aacquire())
        assert keeper.leases() == []

    def test_is_lost_to_a_waiting_task(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Deleted between the grant and reading the row."""
        row, load = new(Proxy), ResourceLease._load
        first: Any = Proxy.pool.acquire()
        monkeypatch.setattr(ResourceLease, "_load", lambda lease: (delete(row), load(lease)))

        async def wait() -> None:
            task = asyncio.create_task(Proxy.pool.aacquire(timeout=60))
            await soon(lambda: poller_on("default").turns.waiters)
            await asyncio.to_thread(closing, first.release)
            await task

        with pytest.raises(LeaseLost):
            asyncio.run(wait())
        assert keeper.leases() == []


def test_a_resource_thread_names_what_is_not_there_any_more_as_nothing(keep: Any) -> None:
    first, second = several(Proxy, 2)
    changes = Changes()
    resource = keep(on_change=changes)
    gone = first if resource.o.pk == first.pk else second
    resource.lease._resource = None
    delete(gone)
    assert str(resource).endswith("holding nothing")
    resource._renew_or_replace()
    assert [(before, now.pk) for before, now in changes.seen] == [(None, (first, second)[gone is first].pk)]
