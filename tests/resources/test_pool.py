"""Acquiring: results and timing."""

import datetime
import os
from typing import Any

import pytest
from django.db import connection, models

from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost, LeaseReleased
from resourcepool.hints import _expected
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.models import AbstractResource, Pool, Proxy, Ticket
from tests.app.models import Bare, Device
from tests.app.rows import busy_for, columns, expire, granted, hold, lasts, new, several, steal
from tests.committed import Clock
from tests.eventually import eventually
from tests.waiting.threads import too_late


def row_of(lease: Any) -> dict[str, Any]:
    return columns(lease.model._base_manager.get(pk=lease.pk))


class TestAcquire:
    def test_returns_the_lease_of_a_free_resource(self) -> None:
        proxy = new(Proxy)
        lease = Proxy.pool.acquire()
        assert lease.resource == proxy
        assert lease.fence == 1
        assert keeper.is_renewing(lease)
        assert lasts(proxy, 60)

    def test_writes_a_holder_that_says_where_it_is(self) -> None:
        new(Proxy)
        lease = Proxy.pool.acquire()
        host, pid, thread, number = lease.holder.split("/")
        assert (bool(host), int(pid), thread) == (True, os.getpid(), "MainThread")
        assert row_of(lease)["holder"] == lease.holder
        lease.release()
        assert Proxy.pool.acquire().holder.rpartition("/")[2] != number

    def test_without_waiting_returns_none_when_nothing_is_free(self) -> None:
        assert Proxy.pool.acquire(wait=False) is None
        hold(new(Proxy))
        assert Proxy.pool.acquire(wait=False) is None
        assert not Ticket.objects.exists()

    def test_with_a_timeout_of_zero_gives_up_at_once(self) -> None:
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0)
        new(Proxy)
        assert Proxy.pool.acquire(timeout=0) is not None

    def test_gives_up_after_its_timeout_and_says_what_there_is(self, process_clock: Clock) -> None:
        free, held, cooling, out, *_ = several(Proxy, 4, country="US")
        new(Proxy, country="DE")
        hold(free)
        hold(held)
        hold(cooling, cooldown=50).release()
        Proxy.objects.filter(pk=out.pk).drain("broken")
        error = too_late(process_clock, lambda: Proxy.pool.acquire(timeout=20, country="US"))
        assert str(error) == (
            'no resourcepool.Proxy matching {"country": "US"} came free within 20 s: 4 match, 2 leased, '
            "1 cooling down or quarantined, 1 out of service; 0 others waiting for this pool"
        )
        assert isinstance(error, TimeoutError)

    def test_forgets_the_ticket_of_a_caller_that_gave_up(self) -> None:
        held = hold(new(Proxy))
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0.05)
        assert (list(Ticket.objects.all()), dict(_expected)) == ([], {})
        held.release()

    def test_takes_times_as_timedelta(self) -> None:
        proxy = new(Proxy)
        lease = Proxy.pool.acquire(
            ttl=datetime.timedelta(seconds=40),
            cooldown=datetime.timedelta(seconds=20),
            timeout=datetime.timedelta(0),
        )
        assert lasts(proxy, 40)
        lease.release()
        assert lasts(proxy, 20)

    def test_works_on_a_model_keyed_by_uuid(self) -> None:
        device = new(Device)
        with Device.pool.lease() as lease:
            assert lease.resource == device
            assert lease.pk == device.pk
            assert lasts(device, 30)
            lease.renew()
        assert busy_for(device) <= 0


class TestDefaults:
    def test_of_the_model_come_before_those_of_all(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "TTL": 50}
        new(Proxy)
        with Proxy.pool.lease() as lease:
            assert lease._terms.ttl == 50
        new(Device)
        with Device.pool.lease() as lease:
            assert lease._terms.ttl == 30

    def test_in_the_settings_for_the_model_come_before_its_own(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {
            **settings.RESOURCEPOOL,
            "POOLS": {"testapp.Device": {"ttl": 40, "cooldown": 3, "max_hold": 99, "strategy": "random"}},
        }
        device = new(Device)
        lease = Device.pool.acquire()
        assert (lease._terms.ttl, lease._terms.max_hold, lease._request.strategy) == (40, 99, "random")
        lease.release()
        assert lasts(device, 3)

    def test_come_after_what_the_caller_says(self) -> None:
        new(Device)
        assert Device.pool.acquire(ttl=7, max_hold=6.5)._terms.ttl == 6.5

    def test_of_a_pool_are_checked_where_they_are_written(self) -> None:
        with pytest.raises(BadOption, match="ttl=0 is not allowed"):
            Pool(ttl=0)
        with pytest.raises(BadOption, match="size=3 is not allowed: Pool takes ttl, timeout, cooldown"):
            Pool(size=3)

    def test_of_one_pool_do_not_spread_to_other_models(self) -> None:
        assert Proxy.pool is not Device.pool
        assert Proxy.pool is Proxy.pool
        assert Proxy.pool.model is Proxy

    @pytest.mark.parametrize("owner", [models.Model, AbstractResource, object])
    def test_a_pool_needs_a_concrete_model(self, owner: type) -> None:
        with pytest.raises(BadOption, match="a concrete Django model derived from AbstractResource"):
            Pool().__get__(None, owner).acquire(wait=False)


class TestLeaseBlock:
    def test_holds_the_resource_and_releases_it(self) -> None:
        proxy = new(Proxy)
        with Proxy.pool.lease(timeout=1) as lease:
            lease.ensure_held()
            assert Proxy.pool.acquire(wait=False) is None
        assert busy_for(proxy) <= 0

    def test_says_at_its_end_that_it_was_lost(self) -> None:
        proxy = new(Proxy)
        with pytest.raises(LeaseLost), Proxy.pool.lease():
            steal(proxy)
        assert columns(proxy)["holder"] == "thief"

    def test_waits_no_longer_than_its_timeout(self) -> None:
        with pytest.raises(AcquireTimeout), Proxy.pool.lease(timeout=0.02):
            pass


class TestCoolDown:
    def test_per_pool(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "COOLDOWN": 15}
        proxy = new(Proxy)
        Proxy.pool.acquire().release()
        assert lasts(proxy, 15)


class TestMany:
    def test_returns_as_many_leases_as_asked(self) -> None:
        several(Proxy, 4)
        leases = Proxy.pool.acquire_many(3, timeout=1)
        assert len({lease.pk for lease in leases}) == 3
        for lease in leases:
            lease.ensure_held()
            lease.release()

    def test_takes_none_when_too_few_are_free(self, process_clock: Clock) -> None:
        hold(several(Proxy, 3)[0])
        assert Proxy.pool.acquire_many(3, wait=False) is None
        error = too_late(process_clock, lambda: Proxy.pool.acquire_many(3, timeout=20))
        assert str(error).startswith("no 3 of resourcepool.Proxy came free within 20 s: 3 match")
        eventually(lambda: Proxy.objects.available().count() == 2)

    def test_is_refused_when_there_will_never_be_enough(self) -> None:
        several(Proxy, 3, country="US")
        Proxy.objects.filter(pk=new(Proxy, country="US").pk).retire()
        with pytest.raises(
            BadOption,
            match="count=4 is not allowed: it must be at most 3, the number of matching resources that are not retired",
        ):
            Proxy.pool.acquire_many(4, timeout=5, country="US")

    def test_waits_for_what_an_operator_has_taken_out_of_service(self) -> None:
        several(Proxy, 3)
        Proxy.objects.filter(pk=new(Proxy).pk).drain("maintenance")
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire_many(4, timeout=0.05)

    def test_takes_only_what_matches(self) -> None:
        several(Proxy, 3)
        several(Proxy, 2, country="US")
        assert Proxy.pool.acquire_many(3, wait=False, country="US") is None
        leases = Proxy.pool.acquire_many(2, wait=False, country="US")
        assert {lease.resource.country for lease in leases} == {"US"}


class TestFilters:
    def test_tell_what_rows_are_doing_by_the_databases_clock(self) -> None:
        free, held, gone, cooling = several(Bare, 4)
        hold(held, holder="crawler 1")
        granted(gone, "dead")
        expire(gone)
        verbs.release(connection, Bare, cooling.pk, granted(cooling).fence, 50)
        rows = Bare.objects
        assert set(rows.available()) == {free, gone}
        assert set(rows.held()) == {held}
        assert set(rows.expired()) == {gone}
        assert set(rows.held_by("crawler 1")) == {held}
        assert not rows.held_by("dead").exists()


def test_a_handle_can_be_used_after_its_end_only_to_be_told_so() -> None:
    new(Proxy)
    lease = Proxy.pool.acquire()
    lease.release()
    for use in (
        lease.renew,
        lease.ensure_held,
        lease.release,
        lambda: lease.quarantine("x"),
        lambda: lease.fix("x"),
    ):
        with pytest.raises(LeaseReleased):
            use()
