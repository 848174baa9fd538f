"""The waiters' loop of one process, turn by turn.

The turns are taken in the thread of the test; other processes release and claim at any moment in between.
"""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool.db.dialect import DbLater
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import tickets
from resourcepool.waiting.models import pool_name
from resourcepool.waiting.pacing import SHORTEST, Pacing, pacing_of
from resourcepool.waiting.poll import Poller
from resourcepool.waiting.scan import WAITED_LONG
from resourcepool.waiting.turn import USED_BATCH
from resourcepool.waiting.waiter import LAST_LOOK
from tests.app.models import Device
from tests.app.rows import busy_for, change, columns, expire, hold, lasts, new, several
from tests.committed import Clock
from tests.concurrency.tickets import in_line
from tests.waiting.loop_turns import TICKET_TTL, join, leases, look, of, then
from tests.waiting.threads import given, ticket


class TestBeingServed:
    @pytest.mark.parametrize("model", [Proxy, Device], ids=lambda model: model.__name__)
    def test_by_a_release(self, line: Poller, model: Any) -> None:
        row = new(model)
        held, waiter = hold(row), join(line, model)
        look(line)
        assert not waiter.is_done
        held.release()
        look(line)
        (lease,) = leases(waiter)
        assert (lease.pk, lease.fence, lease.holder) == (row.pk, 2, "me")
        lease.renew()
        assert not line.turns.waiters

    def test_its_ticket_is_removed_together_with_others(self, line: Poller) -> None:
        for number in range(1, USED_BATCH + 1):
            held, waiter = hold(new(Proxy)), join(line)
            held.release()
            look(line)
            assert leases(waiter)
            assert Ticket.objects.count() == number % USED_BATCH

    def test_by_a_row_that_became_free_without_a_release(self, line: Poller, process_clock: Clock) -> None:
        row = new(Proxy)
        hold(row, holder="dead")
        waiter = join(line)
        expire(row)
        process_clock.advance(0.5)
        look(line)
        process_clock.advance(0.5)
        look(line)
        assert leases(waiter)[0].fence == 2

    def test_a_free_row_is_left_to_the_process_of_the_first_waiter_until_it_has_waited_long(
        self, line: Poller, process_clock: Clock
    ) -> None:
        first, waiter = ticket(Proxy), join(line)
        new(Proxy)
        for waited, rows_of_the_first in ((0.5, 0), (WAITED_LONG + 1, 1)):
            process_clock.advance(waited)
            waiter.next_scan = 0.0
            line.turns.take()
            assert len(given(first)) == rows_of_the_first
        assert not waiter.is_done

    def test_before_its_time_is_up_although_its_turn_was_expected_later(
        self, line: Poller, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        process_clock.stop()
        monkeypatch.setattr(Pacing, "first_look", lambda *_: 1.0)
        held, waiter = hold(new(Proxy)), join(line, timeout=0.3)
        held.release()
        process_clock.advance(0.3 - LAST_LOOK + 0.001)
        line.turns.take()
        assert leases(waiter)[0].fence == 2

    def test_each_by_its_own_ticket(self, line: Poller) -> None:
        held = [hold(row) for row in several(Proxy, 2)]
        first, second = join(line, holder="first"), join(line, holder="second")
        held[1].release()
        look(line)
        assert leases(first)[0].pk == held[1].pk
        assert not second.is_done
        held[0].release()
        look(line)
        assert leases(second)[0].pk == held[0].pk


class TestItsTicket:
    def test_is_renewed_in_time(self, line: Poller, process_clock: Clock) -> None:
        waiter = join(line)
        change(of(waiter), busy_before=DbLater(2))
        assert busy_for(of(waiter)) < 4
        process_clock.advance(TICKET_TTL / 3)
        look(line)
        assert lasts(of(waiter), TICKET_TTL)

    def test_that_expired_or_was_removed_is_replaced(self, line: Poller) -> None:
        waiter = join(line)
        first = of(waiter).pk
        expire(of(waiter))
        look(line)
        look(line)
        second = of(waiter).pk
        assert second > first
        Ticket.objects.filter(pk=second)._raw_delete("default")
        look(line)
        look(line)
        assert in_line() == ["me"]

    def test_of_a_leaving_waiter_is_removed(self, line: Poller) -> None:
        waiter = join(line)
        waiter.outcome.cancel()
        look(line)
        assert not Ticket.objects.exists()
        assert not line.turns.waiters

    def test_of_a_leaving_waiter_passes_on_its_row(self, line: Poller) -> None:
        row = new(Proxy)
        held, waiter, behind = hold(row), join(line), ticket(Proxy)
        held.release()
        waiter.outcome.cancel()
        look(line)
        assert given(behind) == [(row.pk, 3)]
        assert list(Ticket.objects.all()) == [behind]

    def test_of_a_leaving_waiter_passes_on_collected_rows(self, line: Poller) -> None:
        rows = several(Proxy, 2)
        held, waiter = [hold(row) for row in rows], join(line, count=2)
        held[0].release()
        look(line)
        waiter.outcome.cancel()
        look(line)
        assert columns(rows[0])["holder"] == ""
        assert busy_for(rows[0]) <= 0
        assert not Ticket.objects.exists()

    def test_is_removed_at_exit_and_its_rows_are_passed_on(self, line: Poller) -> None:
        row = new(Proxy)
        held, _waits, served, behind = hold(row), join(line), join(line, priority=-1), ticket(Proxy, priority=9)
        held.release()
        assert given(of(served)) == [(row.pk, 2)]
        line.turns.remove(list(line.turns.waiters))
        line.turns.remove_used()
        assert list(Ticket.objects.all()) == [behind]
        assert given(behind)[0][0] == row.pk

    def test_of_one_that_gives_up_while_it_is_renewed_fails_no_other(
        self, line: Poller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its own thread removes it, for example because its time is up."""
        stays, gives_up = join(line), join(line)
        stays.renew_at = 0.0

        def leave() -> None:
            gives_up.outcome.cancel()
            line.leave(gives_up)

        monkeypatch.setattr(tickets, "renew", then(tickets.renew, leave))
        line.turns.take()
        assert list(line.turns.waiters) == [stays]

    def test_of_one_that_gives_up_while_it_takes_another_is_removed(
        self, line: Poller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waiter = join(line)
        expire(of(waiter))
        look(line)

        def give_up() -> None:
            waiter.outcome.cancel()
            line.leave(waiter)

        monkeypatch.setattr(tickets, "take", then(tickets.take, give_up))
        line.turns.take()
        line.turns.take()
        assert not Ticket.objects.held().exists()
        assert not line.turns.waiters

    def test_of_one_that_gives_up_before_it_has_a_ticket_while_another_leaves(
        self, line: Poller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leaving, without_ticket = join(line), join(line)
        for waiter in (leaving, without_ticket):
            waiter.renew_at = 0.0
        without_ticket.clear_ticket()
        leaving.outcome.cancel()
        monkeypatch.setattr(tickets, "leave", then(tickets.leave, without_ticket.outcome.cancel))
        line.turns.take()
        line.turns.take()
        assert not line.turns.waiters


class TestLearning:
    """The first check of new waiters is estimated from served ones."""

    def test_the_speed_of_the_line_from_the_tickets_that_are_served(
        self, line: Poller, process_clock: Clock
    ) -> None:
        held = hold(new(Proxy))
        for _ in range(4):
            waiter = join(line)
            process_clock.advance(0.3)
            held.release()
            look(line)
            (held,) = leases(waiter)
        for _ in range(3):
            newcomer = join(line)
        assert newcomer.next_look - newcomer.began > 10 * SHORTEST

    @pytest.mark.only("mysql", "postgresql")  # where a release gives to the first in line in one statement
    def test_the_speed_of_the_line_from_releases_to_other_processes(self, process_clock: Clock) -> None:
        process_clock.stop()
        row = new(Proxy)
        for _ in range(2):
            first = ticket(Proxy)
            hold(row).release()
            expire(row)
            process_clock.advance(0.3)
        assert given(first)
        for _ in range(3):
            last = ticket(Proxy)
        assert pacing_of(pool_name(Proxy), "default").first_look(last.pk, process_clock()) > 10 * SHORTEST


class TestStatements:
    def test_ten_waiters_cost_no_more_than_one(self, line: Poller) -> None:
        def cost() -> int:
            with CaptureQueriesContext(connection) as sent:
                look(line)
            return len(sent)

        hold(new(Proxy))
        join(line)
        look(line)
        for_one = cost()
        for _ in range(9):
            join(line)
        look(line)
        assert cost() == for_one == 1

    def test_no_ticket_is_checked_before_it_is_due(self, line: Poller, process_clock: Clock) -> None:
        hold(new(Proxy))
        waiter = join(line)
        look(line)
        waiter.next_look = waiter.next_scan = process_clock() + 3
        with CaptureQueriesContext(connection) as sent:
            line.turns.take()
        assert len(sent) == 0
        assert line._due() <= waiter.next_look


def test_a_waiter_far_back_gives_free_rows_to_the_first_and_scans_again_if_that_one_is_dead(
    line: Poller, process_clock: Clock
) -> None:
    row = new(Proxy)
    hold(row, holder="dead")
    for number in range(4):
        ticket(Proxy, holder=f"number {number}")
    waiter = join(line)
    process_clock.advance(40)
    line.turns.take()
    assert waiter.is_near is False
    expire(row)
    waiter.next_scan = 0.0
    line.turns.take()
    assert columns(row)["holder"] == "number 0"
    assert waiter.next_scan <= process_clock() + TICKET_TTL


def test_a_waiter_far_back_does_not_scan_each_time_that_a_lease_may_expire(
    line: Poller, process_clock: Clock
) -> None:
    new(Proxy)
    assert Proxy.pool.acquire(ttl=1, wait=False)
    for number in range(4):
        ticket(Proxy, holder=f"number {number}")
    waiter = join(line)
    process_clock.advance(40)
    line.turns.take()
    assert waiter.is_near is False
    assert waiter.next_scan > process_clock() + 4
