"""The order of service, and that no waiter waits longer than necessary."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.exceptions import AcquireTimeout
from resourcepool.leases import verbs
from resourcepool.models import Proxy
from tests.app.models import Device
from tests.app.rows import columns, expire, hold, new, several
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.waiting.threads import Chosen, Waiting, ticket


class TestOrder:
    def test_is_first_come_first_served(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        names = ["first", "second", "third", "fourth"]
        for name in names:
            waiting.start(name)
        assert in_line() == names
        held.release()
        for name in names:
            waiting.let_go(name)
        assert waiting.served == names

    def test_puts_a_lower_priority_number_first(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        for name, priority in (("late", 5), ("normal", 0), ("urgent", -5), ("also urgent", -5)):
            waiting.start(name, priority=priority)
        expected = ["urgent", "also urgent", "normal", "late"]
        assert in_line() == expected
        held.release()
        for name in expected:
            waiting.let_go(name)
        assert waiting.served == expected

    def test_serves_each_selector_by_itself(self, waiting: Waiting) -> None:
        us, de = hold(new(Proxy, country="US")), hold(new(Proxy, country="DE"))
        waiting.start("us 1", country="US")
        waiting.start("de", country="DE")
        waiting.start("us 2", country="US")
        de.release()
        waiting.let_go("de")
        us.release()
        waiting.let_go("us 1")
        waiting.let_go("us 2")
        assert waiting.served == ["de", "us 1", "us 2"]

    def test_keeps_free_rows_for_a_request_for_several(self, waiting: Waiting) -> None:
        one, two = hold(new(Proxy)), hold(new(Proxy))
        both = InBackground(lambda: Proxy.pool.acquire_many(2, timeout=20, holder="both"))
        eventually(lambda: in_line() == ["both"])
        waiting.start("behind")
        one.release()
        assert not waiting.served
        two.release()
        leases = both.result()
        assert {lease.pk for lease in leases} == {one.pk, two.pk}
        assert not waiting.served
        leases[0].release()
        waiting.let_go("behind")
        leases[1].release()

    def test_serves_all_waiters_if_several_rows_become_free_at_once(self, waiting: Waiting) -> None:
        held = [hold(row) for row in several(Proxy, 3)]
        for name in ("first", "second", "third"):
            waiting.start(name)
        for lease in held:
            lease.release()
        assert len({waiting.let_go(name).pk for name in ("first", "second", "third")}) == 3


class TestNewcomers:
    @pytest.mark.parametrize("strategy", ["spread", "random", "sticky"])
    def test_that_do_not_wait_may_not_overtake(self, strategy: str) -> None:
        """A row that became free without a release is first assigned to the first waiter."""
        proxy = new(Proxy)
        ticket(Proxy)
        assert Proxy.pool.acquire(wait=False, strategy=strategy) is None
        assert columns(proxy)["holder"] == "stranger"
        expire(proxy)
        lease: Any = Proxy.pool.acquire(wait=False, strategy=strategy)
        assert lease.pk == proxy.pk

    def test_for_several_and_with_a_timeout_of_zero_may_not_either(self) -> None:
        several(Proxy, 2)
        ticket(Proxy)
        assert Proxy.pool.acquire_many(2, wait=False) is None
        ticket(Proxy)
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0)

    def test_through_a_proxy_model_may_not_either(self) -> None:
        """Proxy models share the rows of their concrete model, and therefore its line."""
        new(Proxy)
        ticket(Proxy)
        assert Chosen.pool.acquire(wait=False) is None
        assert Chosen.pool.acquire_many(1, wait=False) is None

    def test_may_not_overtake_waiters_of_a_proxy_model(self) -> None:
        new(Proxy)
        ticket(Chosen)
        assert Proxy.pool.acquire(wait=False) is None

    def test_are_not_blocked_by_crashed_waiters(self) -> None:
        new(Proxy)
        ticket(Proxy, seconds=-1)
        assert Proxy.pool.acquire(wait=False) is not None

    def test_may_take_rows_that_match_no_waiter(self) -> None:
        new(Proxy, country="US")
        de = new(Proxy, country="DE")
        ticket(Proxy, selector='{"country": "US"}')
        assert Proxy.pool.acquire(wait=False, country="DE").pk == de.pk
        de.refresh_from_db()
        verbs.release(connection, Proxy, de.pk, de.fence, 0)
        assert Proxy.pool.acquire(wait=False).pk == de.pk
        assert Proxy.pool.acquire(wait=False) is None

    def test_may_take_the_rest_when_all_waiters_are_served(self) -> None:
        several(Proxy, 3)
        ticket(Proxy)
        ticket(Proxy)
        assert Proxy.pool.acquire(wait=False) is not None
        assert Proxy.pool.acquire(wait=False) is None

    def test_may_not_take_rows_needed_by_a_request_for_several(self) -> None:
        several(Proxy, 2)
        ticket(Proxy, count=3)
        assert Proxy.pool.acquire(wait=False) is None

    def test_of_another_pool_do_not_care(self) -> None:
        new(Proxy)
        ticket(Device)
        assert Proxy.pool.acquire(wait=False) is not None

    def test_join_the_line_behind_earlier_waiters(self, waiting: Waiting) -> None:
        proxy = new(Proxy)
        held = hold(proxy)
        ticket(Proxy)
        waiting.start("newcomer")
        held.release()
        assert columns(proxy)["holder"] == "stranger"
        expire(proxy)
        waiting.let_go("newcomer")


class TestOneLine:
    def test_serves_waiters_of_a_proxy_model_in_order(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        waiting.start("first")
        waiting.start("second", pool=Chosen.pool)
        waiting.start("third")
        held.release()
        for name in ("first", "second", "third"):
            waiting.let_go(name)
        assert waiting.served == ["first", "second", "third"]

    def test_hands_over_rows_held_through_a_proxy_model(self, waiting: Waiting) -> None:
        new(Proxy)
        held: Any = Chosen.pool.acquire(wait=False)
        waiting.start("first")
        held.release()
        assert waiting.let_go("first").pk == held.pk
