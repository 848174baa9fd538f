"""Who leaves the line, who is woken, and what the thread does that looks for everybody."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from resourcepool.leases.chores import TIDY_EVERY, chores
from resourcepool.leases.poller import poller

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.leases import line, search, verbs
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy, Ticket
from resourcepool.resources import desk
from tests.app.models import Device
from tests.app.rows import columns, expire, granted, hold, new, steal
from tests.committed import Clock, Statement
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.waiting.waiters import Waiting, ticket


class TestTheDead:
    def test_drop_out_of_the_line(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        dead = ticket(Proxy, seconds=1)
        waiting.start("alive")
        expire(dead)
        held.release()
        waiting.let_go("alive")

    def test_are_tidied_away_after_a_while(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        long_dead, just_dead = ticket(Proxy, seconds=-TIDY_EVERY - 1), ticket(Proxy, seconds=-1)
        other_pool = ticket(Device, seconds=-TIDY_EVERY - 1)
        chores._done_at.clear()
        waiting.start("alive")
        held.release()
        waiting.let_go("alive")
        eventually(lambda: not Ticket.objects.filter(pk=long_dead.pk).exists())
        eventually(lambda: set(Ticket.objects.values_list("pk", flat=True)) == {just_dead.pk, other_pool.pk})

    def test_holders_resource_goes_to_the_first_in_line_when_its_lease_expires(self, waiting: Waiting) -> None:
        proxy = new(Proxy)
        granted(proxy, "dead", ttl=0.6)
        assert Proxy.pool.acquire(timeout=10).fence == 2


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
    def test_a_waiter_is_served_when_another_thread_releases_though_no_look_is_due(
        self, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        new(Proxy)
        held = Proxy.pool.acquire()
        monkeypatch.setattr(Pace, "pause", lambda *_: 3_600.0)
        waiting.start("one")
        eventually(lambda: all(one.had_to_wait for lines in poller._lines.values() for one in lines.waiters))
        held.release()
        waiting.let_go("one")

    def test_a_waiter_is_served_after_a_release_elsewhere(self, waiting: Waiting) -> None:
        """Nobody tells this process: it looks often enough by itself."""
        proxy = new(Proxy)
        grant = granted(proxy, "elsewhere")
        waiting.start("one")
        verbs.release(connection, Proxy, proxy.pk, grant.fence, 0)
        waiting.let_go("one")

    def test_a_waiter_is_served_after_a_resource_was_added(self, waiting: Waiting) -> None:
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

    def test_says_in_the_timeout_what_kept_it(
        self, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hold(new(Proxy))

        def fails(*_: Any) -> Any:
            raise DatabaseUnavailable("database 'default': server has gone away")

        monkeypatch.setattr(search, "glance", fails)
        error = too_late(
            process_clock, lambda: Proxy.pool.acquire(timeout=20), lambda: poller.trouble(Proxy, "default")
        )
        assert str(error).endswith("came free within 20 s: database 'default': server has gone away")

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

    def test_an_interruption_is_not_lost_when_what_was_granted_just_now_is(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Stopped for longer than the ttl, and asked to end as soon as it goes on."""
        rows = [new(Proxy), new(Proxy)]
        held = [hold(row) for row in rows]

        def interrupted(waiter: Any, *_: Any) -> Any:
            eventually(in_line)
            for lease in held:
                lease.release()
            granted = waiter.outcome.result(10)
            steal(next(row for row in rows if row.pk == granted[0].pk))
            raise KeyboardInterrupt

        monkeypatch.setattr(desk, "_outcome", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire_many(2, timeout=20)
        assert sorted(columns(row)["holder"] for row in rows) == ["", "thief"], "the other one is given back"

    @pytest.fixture
    def interrupt(self) -> Iterator[Callable[[], None]]:
        """Interrupts the main thread like Ctrl-C, but by a signal that nobody else uses."""

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR2, stop)
        yield lambda: os.kill(os.getpid(), signal.SIGUSR2)
        signal.signal(signal.SIGUSR2, before)
