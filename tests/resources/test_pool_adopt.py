"""Adopting a lease of another process: once, and only under its fence."""

import pytest

from resourcepool.exceptions import BadOption, LeaseLost
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from tests.app.rows import busy_for, columns, lasts, new


class TestAdopt:
    def test_takes_up_what_was_handed_over(self) -> None:
        proxy = new(Proxy)
        before = Proxy.pool.acquire()
        fence = before.hand_over("successor", ttl=20)
        lease = Proxy.pool.adopt(proxy.pk, fence, holder="successor")
        assert (lease.pk, lease.fence) == (proxy.pk, fence + 1)
        lease.ensure_held()
        assert keeper.is_renewing(lease)
        assert lasts(proxy, 60)
        lease.release()

    def test_is_granted_to_one_of_two_who_got_the_same_message(self) -> None:
        proxy = new(Proxy)
        fence = Proxy.pool.acquire().hand_over("successor")
        lease = Proxy.pool.adopt(proxy.pk, fence)
        before = columns(proxy)
        with pytest.raises(LeaseLost, match=f"no longer held under fence {fence}"):
            Proxy.pool.adopt(proxy.pk, fence)
        assert columns(proxy) == before
        lease.renew()

    def test_says_in_the_row_who_has_it(self) -> None:
        proxy = new(Proxy)
        lease = Proxy.pool.adopt(proxy.pk, Proxy.pool.acquire().hand_over("successor"))
        assert columns(proxy)["holder"] == lease.holder != "successor"

    def test_lasts_as_long_as_it_asks_for_not_as_long_as_it_was_handed_over_for(self) -> None:
        proxy = new(Proxy)
        Proxy.pool.adopt(proxy.pk, Proxy.pool.acquire().hand_over("successor", ttl=600), ttl=20)
        assert busy_for(proxy) <= 20

    def test_of_what_this_process_holds_itself_is_refused(self) -> None:
        proxy = new(Proxy)
        lease = Proxy.pool.acquire()
        before = columns(proxy)
        with pytest.raises(BadOption, match="this one holds it itself"):
            Proxy.pool.adopt(proxy.pk, lease.fence)
        assert columns(proxy) == before
        lease.renew()
