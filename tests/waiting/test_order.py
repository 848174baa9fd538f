"""Standing in line: who is served next, and that nobody waits longer than necessary."""

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

    def test_keeps_what_comes_free_for_one_who_waits_for_several(self, waiting: Waiting) -> None:
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

    def test_leaves_nobody_out_when_several_come_free_at_once(self, waiting: Waiting) -> None:
        held = [hold(row) for row in several(Proxy, 3)]
        for name in ("first", "second", "third"):
            waiting.start(name)
        for lease in held:
            lease.release()
        assert len({waiting.let_go(name).pk for name in ("first", "second", "third")}) == 3


class TestNewcomers:
    @pytest.mark.parametrize("strategy", ["spread", "random", "sticky"])
    def test_that_do_not_wait_may_not_overtake(self, strategy: str) -> None:
        """A row that came free by itself is first given to the first in line."""
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
        """Django's proxy models share their concrete model's rows, and so its line."""
        new(Proxy)
        ticket(Proxy)
        assert Chosen.pool.acquire(wait=False) is None
        assert Chosen.pool.acquire_many(1, wait=False) is None

    def test_may_not_overtake_who_waits_through_a_proxy_model(self) -> None:
        new(Proxy)
        ticket(Chosen)
        assert Proxy.pool.acquire(wait=False) is None

    def test_are_not_held_up_by_the_dead(self) -> None:
        new(Proxy)
        ticket(Proxy, seconds=-1)
        assert Proxy.pool.acquire(wait=False) is not None

    def test_may_have_what_nobody_in_line_wants(self) -> None:
        new(Proxy, country="US")
        de = new(Proxy, country="DE")
        ticket(Proxy, selector='{"country": "US"}')
        assert Proxy.pool.acquire(wait=False, country="DE").pk == de.pk
        de.refresh_from_db()
        verbs.release(connection, Proxy, de.pk, de.fence, 0)
        assert Proxy.pool.acquire(wait=False).pk == de.pk
        assert Proxy.pool.acquire(wait=False) is None

    def test_may_have_what_is_left_when_everybody_in_line_is_served(self) -> None:
        several(Proxy, 3)
        ticket(Proxy)
        ticket(Proxy)
        assert Proxy.pool.acquire(wait=False) is not None
        assert Proxy.pool.acquire(wait=False) is None

    def test_may_not_have_what_one_who_waits_for_several_collects(self) -> None:
        several(Proxy, 2)
        ticket(Proxy, count=3)
        assert Proxy.pool.acquire(wait=False) is None

    def test_of_another_pool_do_not_care(self) -> None:
        new(Proxy)
        ticket(Device)
        assert Proxy.pool.acquire(wait=False) is not None

    def test_join_the_line_behind_those_who_came_before(self, waiting: Waiting) -> None:
        proxy = new(Proxy)
        held = hold(proxy)
        ticket(Proxy)
        waiting.start("newcomer")
        held.release()
        assert columns(proxy)["holder"] == "stranger"
        expire(proxy)
        waiting.let_go("newcomer")


class TestOneLine:
    def test_serves_those_who_wait_through_a_proxy_model_in_turn(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        waiting.start("first")
        waiting.start("second", pool=Chosen.pool)
        waiting.start("third")
        held.release()
        for name in ("first", "second", "third"):
            waiting.let_go(name)
        assert waiting.served == ["first", "second", "third"]

    def test_passes_on_what_was_held_through_a_proxy_model(self, waiting: Waiting) -> None:
        new(Proxy)
        held: Any = Chosen.pool.acquire(wait=False)
        waiting.start("first")
        held.release()
        assert waiting.let_go("first").pk == held.pk
