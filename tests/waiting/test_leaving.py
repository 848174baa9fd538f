"""Waiters that leave the line, waiters that are served, and the waiters' thread."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from resourcepool.clock import monotonic
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import poll, tickets
from resourcepool.waiting.poll import Poller, poller_on
from resourcepool.waiting.turn import PRUNE_EVERY, Turns
from resourcepool.waiting.waiter import Waiter
from tests.app.models import Device
from tests.app.rows import columns, expire, granted, hold, new, steal
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.waiting.threads import Waiting, given, ticket


class TestTheDead:
    def test_drop_out_of_the_line(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        dead = ticket(Proxy)
        waiting.start("alive")
        expire(dead)
        held.release()
        waiting.let_go("alive")

    def test_block_their_row_for_the_life_of_their_ticket(self, waiting: Waiting) -> None:
        """A crash is not noticed: the row stays granted until the ticket expires, then it goes to the next waiter."""
        row = new(Proxy)
        held, dead = hold(row), ticket(Proxy, grant_us=60_000_000)
        waiting.start("alive")
        held.release()
        assert given(dead) == [(row.pk, 2)]
        assert in_line() == ["alive"]
        expire(row)
        assert waiting.let_go("alive").fence == 3

    @pytest.mark.usefixtures("removed_at_once")
    def test_are_removed_after_a_while(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        long_dead, just_dead = ticket(Proxy, seconds=-PRUNE_EVERY - 1), ticket(Proxy, seconds=-1)
        other_pool = ticket(Device, seconds=-PRUNE_EVERY - 1)
        waiting.start("alive")
        eventually(lambda: not Ticket.objects.filter(pk=long_dead.pk).exists())
        held.release()
        waiting.let_go("alive")
        eventually(lambda: set(Ticket.objects.values_list("pk", flat=True)) == {just_dead.pk, other_pool.pk})

    def test_holders_resource_goes_to_the_first_in_line_when_its_lease_expires(self) -> None:
        granted(new(Proxy), "dead", ttl=0.3)
        lease: Any = Proxy.pool.acquire(timeout=10)
        assert lease.fence == 2


class TestLeavingTheLine:
    def test_after_a_timeout_the_ticket_is_gone(self) -> None:
        hold(new(Proxy))
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0.1)
        eventually(lambda: not Ticket.objects.exists())

    @pytest.mark.usefixtures("removed_at_once")
    def test_after_being_served_the_ticket_is_gone(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        waiting.start("one")
        held.release()
        waiting.let_go("one")
        eventually(lambda: not Ticket.objects.exists())

    @pytest.mark.usefixtures("removed_at_once")
    def test_after_being_served_by_the_first_look_the_ticket_is_gone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The row was released while the ticket was taken."""
        held, take = hold(new(Proxy)), tickets.take

        def released_before(*args: Any) -> Any:
            held.release()
            return take(*args)

        monkeypatch.setattr(tickets, "take", released_before)
        lease: Any = Proxy.pool.acquire(timeout=20)
        assert lease.fence == 3
        eventually(lambda: not Ticket.objects.exists())

    def test_a_row_at_the_last_moment_is_not_lost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Served after the timeout, before the ticket was removed: the row goes on to the next in line."""
        row = new(Proxy)
        held, remove, behind = hold(row), Turns.remove, []

        def served_meanwhile(turns: Turns, gone: Any) -> None:
            if gone and not behind:
                behind.append(ticket(Proxy))
                held.release()
            remove(turns, gone)

        monkeypatch.setattr(Turns, "remove", served_meanwhile)
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0.05)
        assert given(behind[0]) == [(row.pk, 3)]

    def test_a_row_that_comes_too_late_is_released(self) -> None:
        """The waiter was cancelled during the delivery of its row."""
        proxy = new(Proxy)
        waiter = Waiter(Proxy.pool, "default", Proxy.pool.request(1, {}), "me")
        waiter.outcome.cancel()
        waiter.deliver([granted(proxy)])
        assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (2, "")

    def test_a_row_that_two_threads_deliver_is_held_once(self) -> None:
        proxy = new(Proxy)
        waiter, grant = Waiter(Proxy.pool, "default", Proxy.pool.request(1, {}), "me"), granted(proxy)
        waiter.deliver([grant])
        waiter.deliver([grant])
        (lease,) = waiter.outcome.result()
        assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (grant.fence, grant.holder)
        assert keeper.unreleased() == [lease]
        lease.renew()


class TestBeingServed:
    def test_after_a_release_in_another_thread(self, waiting: Waiting) -> None:
        new(Proxy)
        held: Any = Proxy.pool.acquire()
        waiting.start("one")
        held.release()
        assert waiting.let_go("one").fence == 2, "handed over, never free"

    def test_after_a_row_was_freed_without_a_hand_over(self, waiting: Waiting) -> None:
        proxy = new(Proxy)
        grant = granted(proxy, "elsewhere")
        waiting.start("one")
        verbs.release(connection, Proxy, proxy.pk, grant.fence, 0)
        assert waiting.let_go("one").fence == 3

    def test_after_a_resource_was_added(self, waiting: Waiting) -> None:
        waiting.start("one")
        new(Proxy, fence=1)  # at once, not after the waiter has it
        waiting.let_go("one")

    def test_after_an_operator_returned_a_resource(self, waiting: Waiting) -> None:
        row = new(Proxy)
        Proxy.objects.filter(pk=row.pk).drain("new cable")
        waiting.start("one")
        Proxy.objects.filter(pk=row.pk).return_to_service()
        waiting.let_go("one")

    def test_after_a_cool_down(self, waiting: Waiting) -> None:
        row = new(Proxy)
        held = hold(row, cooldown=60)
        waiting.start("one")
        held.release()
        assert in_line() == ["one"], "it rests"
        expire(row)
        waiting.let_go("one")


class TestTheThread:
    def test_waits_through_an_outage(self, monkeypatch: pytest.MonkeyPatch, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        waiting.start("one")
        look, failed = tickets.look, threading.Event()

        def fails(*_: Any) -> Any:
            failed.set()
            raise DatabaseUnavailable("gone")

        monkeypatch.setattr(tickets, "look", fails)
        assert failed.wait(60)
        held.release()
        monkeypatch.setattr(tickets, "look", look)
        waiting.let_go("one")

    def test_says_in_the_timeout_what_kept_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hold(new(Proxy))

        def fails(*_: Any) -> Any:
            raise DatabaseUnavailable("database 'default': server has gone away")

        monkeypatch.setattr(tickets, "look", fails)
        with pytest.raises(
            AcquireTimeout, match=r"came free within 0.3 s: database 'default': server has gone away"
        ):
            Proxy.pool.acquire(timeout=0.3)

    def test_fails_the_waiters_on_an_unexpected_error_and_continues(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = hold(new(Proxy))

        def fails(*_: Any) -> Any:
            raise LookupError("a mistake in the program")

        with monkeypatch.context() as patch:
            patch.setattr(tickets, "look", fails)
            with pytest.raises(LookupError, match="a mistake in the program"):
                Proxy.pool.acquire(timeout=20)
        assert not poller_on("default").turns.waiters
        waiter = InBackground(lambda: Proxy.pool.acquire(timeout=10))
        eventually(in_line)
        held.release()
        assert waiter.result() is not None

    def test_a_lost_ticket_is_replaced(self, waiting: Waiting) -> None:
        held = hold(new(Proxy))
        waiting.start("one")
        Ticket.objects.all()._raw_delete("default")
        eventually(lambda: in_line() == ["one"])
        held.release()
        waiting.let_go("one")

    def test_an_interrupted_waiter_leaves_the_line(self, interrupt: Callable[[], None]) -> None:
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
        """The process was paused for longer than the ttl, and interrupted as soon as it continues."""
        rows = [new(Proxy), new(Proxy)]
        held = [hold(row) for row in rows]
        usual = Poller.wait

        def interrupted(poller: Poller, waiter: Any, *args: Any, **options: Any) -> Any:
            for lease in held:
                lease.release()
            usual(poller, waiter, *args, **options)
            steal(next(row for row in rows if row.pk == waiter.outcome.result()[0].pk))
            raise KeyboardInterrupt

        monkeypatch.setattr(Poller, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire_many(2, timeout=20)
        assert sorted(columns(row)["holder"] for row in rows) == ["", "thief"], "the other one is given back"

    def test_who_joins_during_a_turn_is_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        mine, woken = Poller("default"), list[str]()
        first = Waiter(Proxy.pool, "default", Proxy.pool.request(1, {"timeout": 60}), "first")
        second = Waiter(Proxy.pool, "default", Proxy.pool.request(1, {"timeout": 60}), "second")
        for waiter in (first, second):
            waiter.set_ticket(tickets.NewTicket(ticket(Proxy).pk, monotonic(), 60, 60))
        mine.join(first, lambda: woken.append("first"))
        mine._due()
        woken.clear()

        def joins() -> list[Waiter]:
            mine.join(second, lambda: woken.append("second"))
            return [first]

        monkeypatch.setattr(mine.turns, "_not_done", joins)
        mine.take_turn()
        assert woken == ["first"] or mine._due() <= second.next_look
        mine.turns._notice(second.ticket.pk)  # type: ignore[union-attr]
        assert mine._due() == 0.0
        assert woken[-1] == "first"

    @pytest.mark.parametrize("waits", [True, False])
    def test_at_exit_says_how_many_tickets_stay(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, waits: bool
    ) -> None:
        def fails(*_: Any) -> None:
            raise DatabaseUnavailable("gone")

        monkeypatch.setattr(tickets, "remove", fails)
        monkeypatch.setattr(tickets, "leave", fails)
        monkeypatch.setattr(poll, "_pollers", {"default": (mine := Poller("default"))})
        mine.turns.used = {1: None, 2: None}
        waiter = Waiter(Proxy.pool, "default", Proxy.pool.request(1, {}), "me")
        waiter.ticket = tickets.NewTicket(ticket(Proxy).pk, 0.0, 0, 0)
        if waits:
            mine.turns.waiters[waiter] = None
        poll.remove_all()
        assert [record.getMessage() for record in caplog.records] == [
            f"{2 + waits} tickets not removed at exit; they will expire: gone"
        ]

    @pytest.fixture
    def interrupt(self) -> Iterator[Callable[[], None]]:
        """Interrupts the main thread like Ctrl-C, but with an unused signal."""

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR2, stop)
        yield lambda: os.kill(os.getpid(), signal.SIGUSR2)
        signal.signal(signal.SIGUSR2, before)
