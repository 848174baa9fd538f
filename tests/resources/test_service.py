"""In and out of service: an operator's changes never touch a running lease."""

from typing import Any

import pytest

from resourcepool.dialect import DbLater
from resourcepool.models import Proxy
from resourcepool.resources.models import Status
from resourcepool.resources.state import State, state_of
from tests.app.models import Device
from tests.app.rows import busy_for, change, columns, expire, new, several
from tests.eventually import InBackground, eventually


@pytest.fixture
def proxy() -> Any:
    return new(Proxy)


def state(row: Any) -> State:
    return state_of(Proxy.objects.get(pk=row.pk))


class TestTakeOut:
    def test_hands_it_out_no_more(self, proxy: Any) -> None:
        assert Proxy.objects.take_out("broken") == 1
        assert Proxy.pool.acquire(wait=False) is None
        assert state(proxy) == State.OUT
        assert columns(proxy)["reason"] == "broken"

    def test_of_a_held_one_drains_it(self, proxy: Any) -> None:
        lease = Proxy.pool.acquire()
        Proxy.objects.take_out("broken")
        assert state(proxy) == State.DRAINING
        assert set(Proxy.objects.draining()) == {proxy}
        lease.renew()
        lease.ensure_held()
        lease.release()
        assert state(proxy) == State.OUT
        assert not Proxy.objects.draining().exists()
        assert Proxy.pool.acquire(wait=False) is None

    def test_for_a_while_comes_back_by_itself_to_those_who_wait(self, proxy: Any) -> None:
        Proxy.objects.take_out("maintenance", for_seconds=600)
        assert Proxy.pool.acquire(wait=False) is None
        waiter = InBackground(lambda: Proxy.pool.acquire(timeout=10))
        change(proxy, until=DbLater(-0.001))
        assert waiter.result().pk == proxy.pk
        after = columns(proxy)
        assert (after["in_service"], after["status"], after["reason"]) == (True, Status.IN_SERVICE, "")

    def test_for_a_while_comes_back_by_itself_to_those_who_do_not_wait(self, proxy: Any) -> None:
        Proxy.objects.take_out("maintenance", for_seconds=600)
        change(proxy, until=DbLater(-0.001))
        assert eventually(lambda: Proxy.pool.acquire(wait=False)).pk == proxy.pk

    def test_without_an_end_stays_out(self, proxy: Any) -> None:
        Proxy.objects.take_out("broken")
        assert Proxy.objects.return_due() == 0
        assert state(proxy) == State.OUT

    def test_cuts_a_long_reason(self, proxy: Any) -> None:
        Proxy.objects.take_out("x" * 500)
        assert columns(proxy)["reason"] == "x" * 200


class TestReturn:
    def test_hands_it_out_again(self, proxy: Any) -> None:
        Proxy.objects.take_out("broken")
        assert Proxy.objects.return_to_service() == 1
        assert state(proxy) == State.FREE
        assert columns(proxy)["reason"] == ""
        assert Proxy.pool.acquire(wait=False) is not None

    def test_ends_a_quarantine_and_forgets_the_strikes(self, proxy: Any) -> None:
        Proxy.pool.acquire().quarantine("banned")
        fence = columns(proxy)["fence"]
        assert state(proxy) == State.QUARANTINED
        assert Proxy.objects.return_to_service() == 1
        after = columns(proxy)
        assert (after["strikes"], after["fence"]) == (0, fence + 1)
        assert Proxy.pool.acquire(wait=False) is not None

    def test_ends_a_drain_and_the_lease_goes_on(self, proxy: Any) -> None:
        lease = Proxy.pool.acquire()
        Proxy.objects.take_out("broken")
        Proxy.objects.return_to_service()
        assert state(proxy) == State.LEASED
        lease.renew()
        assert busy_for(proxy) > 59
        lease.release()
        assert state(proxy) == State.FREE

    def test_does_not_cut_a_cool_down_or_a_lease_short(self, proxy: Any) -> None:
        Proxy.pool.acquire(cooldown=50).release()
        before = columns(proxy)
        assert Proxy.objects.return_to_service() == 0
        assert columns(proxy) == before


class TestRetire:
    def test_hands_it_out_no_more_and_keeps_the_row(self, proxy: Any) -> None:
        lease = Proxy.pool.acquire()
        assert Proxy.objects.retire("sold") == 1
        lease.renew()
        assert state(proxy) == State.DRAINING
        lease.release()
        assert state(proxy) == State.RETIRED
        assert columns(proxy)["reason"] == "sold"
        assert Proxy.objects.return_due() == 0


class TestState:
    def test_of_a_lease_a_cool_down_and_a_free_one(self, proxy: Any) -> None:
        assert state(proxy) == State.FREE
        lease = Proxy.pool.acquire(cooldown=50)
        assert state(proxy) == State.LEASED
        lease.release()
        assert state(proxy) == State.COOLING
        expire(proxy)
        assert state(proxy) == State.FREE

    def test_a_quarantine_long_over_does_not_colour_what_comes_later(self, proxy: Any) -> None:
        Proxy.pool.acquire().quarantine("banned")
        change(proxy, busy_before=DbLater(-1), until=DbLater(-1))
        lease = Proxy.pool.acquire(cooldown=50)
        assert state(proxy) == State.LEASED
        lease.release()
        assert state(proxy) == State.COOLING
        assert not Proxy.objects.quarantined().exists()
        before = busy_for(proxy)
        Proxy.objects.return_to_service()
        assert busy_for(proxy) == pytest.approx(before, abs=1)


class TestDelete:
    def test_of_a_free_one_deletes_it(self, proxy: Any) -> None:
        assert proxy.delete() == (1, {"resourcepool.Proxy": 1})
        assert not Proxy.objects.exists()

    def test_of_a_held_one_makes_it_a_lame_duck(self, proxy: Any) -> None:
        lease = Proxy.pool.acquire()
        assert Proxy.objects.get(pk=proxy.pk).delete() == (0, {})
        lease.renew()
        lease.ensure_held()
        assert state(proxy) == State.DRAINING
        lease.release()
        assert state(proxy) == State.RETIRED
        assert Proxy.pool.acquire(wait=False) is None
        proxy.delete()
        assert not Proxy.objects.exists()

    def test_of_many_spares_the_held_ones(self) -> None:
        several(Device, 5)
        lease = Device.pool.acquire()
        assert Device.objects.all().delete() == (4, {"testapp.Device": 4})
        assert list(Device.objects.values_list("pk", flat=True)) == [lease.pk]
        lease.renew()

    def test_of_one_whose_lease_has_expired_deletes_it(self, proxy: Any) -> None:
        Proxy.pool.acquire()
        expire(proxy)
        proxy.delete()
        assert not Proxy.objects.exists()
