"""Standing in line: who is served next, and that nobody waits longer than necessary."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.dialect import DbLater, DbNow
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.leases import tickets, verbs
from resourcepool.models import Proxy, Ticket
from tests.app.models import Device
from tests.app.rows import change, columns, hold, new, several
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.waiting.waiters import Waiting, ticket


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

    def test_skips_nobody_who_is_awake(self, waiting: Waiting) -> None:
        """Others may have taken it for dead; this process knows better."""
        for _ in range(2):
            new(Proxy, busy_before=DbLater(60), fence=1, holder="stranger")
        for name in ("first", "second", "third"):
            waiting.start(name)
        Ticket.objects.filter(holder="second").update(skipped_until=DbLater(60))
        Proxy.objects.update(busy_before=DbLater(-1))
        eventually(lambda: sorted(waiting.served) == ["first", "second"])
        eventually(lambda: in_line() == ["third"])
        assert len(waiting.served) == 2
        for name in ("first", "second", "third"):
            waiting.let_go(name)

    def test_does_not_skip_somebody_again_who_has_just_woken(self) -> None:
        sleeper = ticket(Proxy)

        def is_skipped() -> bool:
            return Ticket.objects.filter(skipped_until__gt=DbNow()).exists()

        tickets.skip(connection, [sleeper.pk], 60)
        assert is_skipped()
        tickets.unskip(connection, [sleeper.pk])
        tickets.skip(connection, [sleeper.pk], 60)
        assert not is_skipped()
        Ticket.objects.update(skipped_until=DbLater(-tickets.SPARED_FOR - 1))
        tickets.skip(connection, [sleeper.pk], 60)
        assert is_skipped()

    def test_serves_the_others_even_if_the_sleepers_cannot_be_skipped(
        self, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any) -> None:
            raise DatabaseUnavailable("not now")

        monkeypatch.setattr(tickets, "skip", fail)
        row = hold(new(Proxy))
        ticket(Proxy)
        waiting.start("first")
        waiting.start("second")
        row.release()
        for name in ("first", "second"):
            waiting.let_go(name)
        assert waiting.served == ["first", "second"]

    def test_that_is_skipped_does_not_hold_up_newcomers(self) -> None:
        sleeper = ticket(Proxy)
        new(Proxy)
        assert Proxy.pool.acquire(wait=False) is None
        tickets.skip(connection, [sleeper.pk], 60)
        lease: Any = Proxy.pool.acquire(wait=False)
        lease.release()

    def test_leaves_nobody_out_when_several_come_free_at_once(self, waiting: Waiting) -> None:
        held = [hold(row) for row in several(Proxy, 3)]
        for name in ("first", "second", "third"):
            waiting.start(name)
        for lease in held:
            lease.release()
        assert len({waiting.let_go(name).pk for name in ("first", "second", "third")}) == 3


class TestNewcomers:
    def test_that_do_not_wait_may_not_overtake(self, waiting: Waiting) -> None:
        """A row that is free for a moment, before the first in line has taken it, is not for them."""
        proxy = new(Proxy)
        stranger = ticket(Proxy)
        for options in (
            {"wait": False},
            {"wait": False, "strategy": "random"},
            {"wait": False, "strategy": "sticky"},
        ):
            assert Proxy.pool.acquire(**options) is None
        assert Proxy.pool.acquire_many(1, wait=False) is None
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0)
        assert columns(proxy)["fence"] == 0
        change(stranger, busy_before=DbLater(-1))
        assert Proxy.pool.acquire(wait=False).pk == proxy.pk

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

    def test_may_not_have_what_is_kept_for_one_who_waits_for_several(self) -> None:
        several(Proxy, 2)
        ticket(Proxy, count=3)
        assert Proxy.pool.acquire(wait=False) is None

    def test_of_another_pool_do_not_care(self) -> None:
        new(Proxy)
        ticket(Device)
        assert Proxy.pool.acquire(wait=False) is not None

    def test_join_the_line_behind_those_who_came_before(self, waiting: Waiting) -> None:
        proxy = new(Proxy)
        stranger = ticket(Proxy)
        waiting.start("newcomer")
        assert columns(proxy)["fence"] == 0
        stranger.delete()
        waiting.let_go("newcomer")
