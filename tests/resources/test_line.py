"""Standing in line: who is served next, and that nobody waits longer than necessary."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from resourcepool.dialect import DbLater, DbNow
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.leases import line, search, verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.poller import poller
from resourcepool.models import Proxy, Ticket
from tests.app.models import Device
from tests.app.rows import change, columns, expire, granted, hold, new, several
from tests.committed import Statement
from tests.eventually import InBackground, eventually


def in_line(**fields: Any) -> list[str]:
    """Return the names of those who wait, in the order of service."""
    tickets = Ticket.objects.held().filter(**fields).order_by("priority", "pk")
    return list(tickets.values_list("holder", flat=True))


class Waiting:
    """Starts waiters and notes in which order they are served; each keeps what it gets until ``let_go``."""

    def __init__(self) -> None:
        self.served: list[str] = []
        self._threads: dict[str, InBackground] = {}
        self._leases: dict[str, Any] = {}

    def start(self, name: str, **wishes: Any) -> None:
        """Start a waiter; return once it stands in line."""

        def wait() -> None:
            self._leases[name] = Proxy.pool.acquire(**{"timeout": 20, "holder": name, **wishes})
            self.served.append(name)

        self._threads[name] = InBackground(wait)
        eventually(lambda: name in in_line())

    def let_go(self, name: str) -> Any:
        """Wait until this one is served, and let it release."""
        self._threads[name].result()
        self._leases[name].release()
        return self._leases[name]


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


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
        assert in_line() == ["third"]
        for name in ("first", "second", "third"):
            waiting.let_go(name)

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


class TestTheDead:
    def test_drop_out_of_the_line(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        dead = ticket(Proxy, seconds=1)
        waiting.start("alive")
        expire(dead)
        held.release()
        waiting.let_go("alive")

    def test_are_tidied_away_after_a_while(self, monkeypatch: pytest.MonkeyPatch, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        long_dead, just_dead = ticket(Proxy, seconds=-line.TIDY_EVERY - 1), ticket(Proxy, seconds=-1)
        other_pool = ticket(Device, seconds=-line.TIDY_EVERY - 1)
        monkeypatch.setattr(line, "TIDY_EVERY", 60.0)
        line._done_at.clear()
        waiting.start("alive")
        held.release()
        waiting.let_go("alive")
        eventually(lambda: not Ticket.objects.filter(pk=long_dead.pk).exists())
        eventually(lambda: set(Ticket.objects.values_list("pk", flat=True)) == {just_dead.pk, other_pool.pk})

    def test_holders_resource_goes_to_the_first_in_line_when_its_lease_expires(self, waiting: Waiting) -> None:
        proxy = new(Proxy)
        granted(proxy, "dead", ttl=0.6)
        began = time.monotonic()
        lease = Proxy.pool.acquire(timeout=10)
        assert lease.fence == 2
        assert time.monotonic() - began < 0.6 + 0.3


class TestLeavingTheLine:
    def test_after_a_timeout_the_ticket_is_gone(self) -> None:
        hold(new(Proxy))
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0.1)
        eventually(lambda: not Ticket.objects.exists())

    def test_after_being_served_the_ticket_is_gone(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        waiting.start("one")
        held.release()
        waiting.let_go("one")
        eventually(lambda: not Ticket.objects.exists())
        eventually(lambda: not [lease for lease in keeper.kept() if lease.model is Ticket])

    def test_what_comes_in_the_last_moment_is_not_lost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Served after the timeout and before it was noticed: the caller gets it after all."""
        held = hold(new(Proxy))
        desk = Proxy.pool._desk
        too_late = type(desk)._too_late

        def served_meanwhile(self: Any, asked: Any, waiter: Any, *more: Any) -> Any:
            held.release()
            eventually(waiter.outcome.done)
            return too_late(self, asked, waiter, *more)

        monkeypatch.setattr(type(desk), "_too_late", served_meanwhile)
        assert Proxy.pool.acquire(timeout=0.05).fence == 3

    def test_what_comes_too_late_is_given_back(self) -> None:
        """The waiter gave up while its row was being claimed."""
        proxy = new(Proxy)
        request = Proxy.pool._desk._request(Proxy.pool._order(1, {}))
        waiter = line.Waiter(request)
        waiter.give_up()
        waiter.give([granted(proxy)])
        assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (2, "")


class TestBeingWoken:
    def test_a_waiter_is_served_soon_after_a_release_in_another_thread(self, waiting: Waiting) -> None:
        new(Proxy)
        held = Proxy.pool.acquire()
        waiting.start("one")
        released_at = time.monotonic()
        held.release()
        waiting.let_go("one")
        assert time.monotonic() - released_at < 0.25

    def test_a_waiter_is_served_soon_after_a_release_elsewhere(self, waiting: Waiting) -> None:
        """Nobody tells this process: it looks often enough by itself."""
        proxy = new(Proxy)
        grant = granted(proxy, "elsewhere")
        waiting.start("one")
        verbs.release(connection, Proxy, proxy.pk, grant.fence, 0)
        released_at = time.monotonic()
        waiting.let_go("one")
        assert time.monotonic() - released_at < 0.6

    def test_a_waiter_is_served_soon_after_a_resource_was_added(self, waiting: Waiting) -> None:
        waiting.start("one")
        new(Proxy)
        waiting.let_go("one")


class TestThePoller:
    def test_waiters_of_one_process_share_its_queries(
        self, statements: list[Statement], waiting: Waiting
    ) -> None:
        held = hold(new(Proxy))
        for number in range(10):
            waiting.start(str(number))
        time.sleep(1)  # until it looks no more often than it must
        statements.clear()
        time.sleep(1)
        asked = [one for one in statements if one.thread == "resourcepool-poller"]
        assert 2 <= len(asked) <= 6
        held.release()
        for number in range(10):
            waiting.let_go(str(number))

    def test_waits_through_an_outage(self, monkeypatch: pytest.MonkeyPatch, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        waiting.start("one")
        look, failed = search.glance, threading.Event()

        def fails(*_: Any) -> Any:
            failed.set()
            raise DatabaseUnavailable("gone")

        monkeypatch.setattr(search, "glance", fails)
        assert failed.wait(5)
        held.release()
        monkeypatch.setattr(search, "glance", look)
        waiting.let_go("one")

    def test_says_in_the_timeout_what_kept_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hold(new(Proxy))

        def fails(*_: Any) -> Any:
            raise DatabaseUnavailable("database 'default': server has gone away")

        monkeypatch.setattr(search, "glance", fails)
        with pytest.raises(
            AcquireTimeout, match=r"came free within 0.3 s: database 'default': server has gone away"
        ):
            Proxy.pool.acquire(timeout=0.3)

    def test_tells_the_waiters_what_can_never_work_and_lives_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        held = hold(new(Proxy))

        def fails(*_: Any) -> Any:
            raise LookupError("a mistake in the program")

        with monkeypatch.context() as patch:
            patch.setattr(search, "glance", fails)
            with pytest.raises(LookupError, match="a mistake in the program"):
                Proxy.pool.acquire(timeout=20)
        assert poller.is_alive()
        waiter = InBackground(lambda: Proxy.pool.acquire(timeout=10))
        eventually(in_line)
        held.release()
        assert waiter.result() is not None

    def test_a_ticket_that_was_lost_is_taken_anew(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        waiting.start("one")
        (kept,) = eventually(lambda: [lease for lease in keeper.kept() if lease.model is Ticket])
        Ticket.objects.all()._raw_delete("default")
        kept.lose("its row is gone")
        eventually(lambda: in_line() == ["one"])
        held.release()
        waiting.let_go("one")

    def test_somebody_interrupted_while_waiting_leaves_the_line(self, interrupt: Callable[[], None]) -> None:
        held = hold(new(Proxy))
        InBackground(lambda: (eventually(in_line), interrupt()))
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())
        held.release()
        assert Proxy.pool.acquire(wait=False) is not None

    @pytest.fixture
    def interrupt(self) -> Iterator[Callable[[], None]]:
        """Interrupts the main thread like Ctrl-C, but by a signal that nobody else uses."""

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR2, stop)
        yield lambda: os.kill(os.getpid(), signal.SIGUSR2)
        signal.signal(signal.SIGUSR2, before)


def ticket(model: Any, seconds: float = 30, **fields: Any) -> Ticket:
    """Put a stranger in line, who will not do anything."""
    fields = {"asked_at": DbNow(), "fence": 1, "holder": "stranger", **fields}
    return new(Ticket, pool=model._meta.label_lower, busy_before=DbLater(seconds), **fields)
