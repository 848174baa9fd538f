"""What one process does for its waiters, turn by turn, and what it believes of what it is given.

The turns are taken here in the test's own thread; another process would release and claim at any moment in between.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool.dialect import DbLater
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import margin
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import tickets
from resourcepool.waiting.contention import SHORTEST, speed_of
from resourcepool.waiting.line import USED_AT_MOST, Line
from resourcepool.waiting.waiter import Waiter
from tests.app.models import Device
from tests.app.rows import busy_for, change, columns, expire, hold, new, several, steal
from tests.committed import Clock
from tests.concurrency.tickets import in_line
from tests.waiting.waiters import given, ticket

TICKET_TTL = 6.0


@pytest.fixture
def line(process_clock: Clock) -> Line:
    return Line("default")


def join(line: Line, model: Any = Proxy, count: int = 1, **wishes: Any) -> Waiter:
    """Put somebody into this line; nobody looks for it but the test's own turns."""
    request = model.pool.request(count, {"timeout": 60, "holder": "me", **wishes})
    waiter = Waiter(model.pool, "default", request, "me")
    waiter.has(tickets.take(connection, model, request, "me"))
    line.waiters.append(waiter)
    return waiter


def look(line: Line) -> None:
    line.turn(noticed=True)


def of(waiter: Waiter) -> Ticket:
    assert waiter.ticket is not None
    return Ticket.objects.get(pk=waiter.ticket.pk)


def then(do: Callable[..., Any], and_then: Callable[[], object]) -> Callable[..., Any]:
    """Return what does one after the other, and returns what the first one did."""

    def both(*args: Any) -> Any:
        done = do(*args)
        and_then()
        return done

    return both


def leases(waiter: Waiter) -> list[Lease]:
    """Return what the waiter was given, which it must have been by now."""
    return waiter.outcome.result()


class TestBeingServed:
    @pytest.mark.parametrize("model", [Proxy, Device], ids=lambda model: model.__name__)
    def test_by_a_release(self, line: Line, model: Any) -> None:
        row = new(model)
        held, waiter = hold(row), join(line, model)
        look(line)
        assert not waiter.has_left
        held.release()
        look(line)
        (lease,) = leases(waiter)
        assert (lease.pk, lease.fence, lease.holder) == (row.pk, 2, "me")
        lease.renew()
        assert line.waiters == []

    def test_its_ticket_is_removed_with_others_a_moment_later(self, line: Line, process_clock: Clock) -> None:
        held, waiter = hold(new(Proxy)), join(line)
        held.release()
        look(line)
        assert leases(waiter)
        assert Ticket.objects.count() == 1
        process_clock.advance(USED_AT_MOST + 0.1)
        look(line)
        assert Ticket.objects.count() == 0

    def test_by_what_came_free_by_itself(self, line: Line, process_clock: Clock) -> None:
        row = new(Proxy)
        hold(row, holder="dead")
        waiter = join(line)
        expire(row)
        process_clock.advance(0.5)
        look(line)
        process_clock.advance(0.5)
        look(line)
        assert leases(waiter)[0].fence == 2

    def test_each_by_its_own_ticket(self, line: Line) -> None:
        held = [hold(row) for row in several(Proxy, 2)]
        first, second = join(line, holder="first"), join(line, holder="second")
        held[1].release()
        look(line)
        assert leases(first)[0].pk == held[1].pk
        assert not second.has_left
        held[0].release()
        look(line)
        assert leases(second)[0].pk == held[0].pk


class TestTrust:
    def test_begins_when_the_look_that_found_it_was_sent(self, line: Line, process_clock: Clock) -> None:
        held, waiter = hold(new(Proxy)), join(line)
        look(line)
        held.release()
        process_clock.advance(1)
        before = process_clock()
        look(line)
        after = process_clock()
        (lease,) = leases(waiter)
        assert before <= lease.trust.sent_at <= after

    def test_lasts_for_what_the_ticket_says_is_left(self, line: Line) -> None:
        """It was given some time before: when, nobody here can know."""
        row = new(Proxy)
        held, waiter = hold(row), join(line)
        held.release()
        for one in (row, of(waiter)):
            change(one, busy_before=DbLater(4))
        look(line)
        trust = leases(waiter)[0].trust
        assert 3.5 < round(trust.lasts, 3) <= 4
        assert trust.until == trust.sent_at + trust.lasts - margin(trust.lasts)

    def test_lasts_for_the_tickets_life_until_the_first_renewal(self, line: Line) -> None:
        row = new(Proxy)
        held, waiter = hold(row), join(line, ttl=60)
        held.release()
        assert 5 < busy_for(row) <= TICKET_TTL
        look(line)
        (lease,) = leases(waiter)
        assert lease.remaining < TICKET_TTL
        lease.renew()
        assert 59 < busy_for(row) <= 60
        assert lease.remaining > 57

    def test_lasts_no_longer_than_was_asked_for(self, line: Line) -> None:
        row = new(Proxy)
        held, waiter = hold(row), join(line, ttl=1)
        held.release()
        assert busy_for(row) <= 1
        look(line)
        assert leases(waiter)[0].remaining <= 1

    def test_is_not_given_to_what_has_run_out_before_it_was_seen(self, line: Line) -> None:
        """This process stood still: it leaves what it was given to others, and stands in line anew."""
        row = new(Proxy)
        held, waiter, behind = hold(row), join(line), ticket(Proxy)
        held.release()
        for one in (row, of(waiter)):
            expire(one)
        look(line)
        assert not waiter.has_left
        assert given(behind) == [(row.pk, 3)]
        look(line)
        assert in_line() == ["me"]

    def test_is_not_given_to_what_may_have_run_out_while_the_answer_was_on_its_way(
        self, line: Line, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        held, waiter, behind = hold(row), join(line), ticket(Proxy)
        held.release()
        with monkeypatch.context() as patch:
            patch.setattr(tickets, "look", then(tickets.look, lambda: process_clock.advance(TICKET_TTL - 0.5)))
            look(line)
        assert not waiter.has_left
        assert given(behind) == [(row.pk, 3)]

    def test_is_not_given_to_what_somebody_else_has_taken_since(self, line: Line) -> None:
        row = new(Proxy)
        held, waiter = hold(row), join(line)
        held.release()
        expire(of(waiter))
        steal(row)
        look(line)
        assert not waiter.has_left
        assert columns(row)["holder"] == "thief"

    def test_is_given_to_what_it_gets_after_it_has_stood_still(self, line: Line, process_clock: Clock) -> None:
        row = new(Proxy)
        held, waiter = hold(row), join(line)
        held.release()
        for one in (row, of(waiter)):
            expire(one)
        for _ in range(3):
            look(line)
            process_clock.advance(0.5)
        assert leases(waiter)[0].fence == 4
        leases(waiter)[0].ensure_held()


class TestItsTicket:
    def test_is_renewed_in_time(self, line: Line, process_clock: Clock) -> None:
        waiter = join(line)
        change(of(waiter), busy_before=DbLater(2))
        assert busy_for(of(waiter)) < 4
        process_clock.advance(TICKET_TTL / 3)
        look(line)
        assert busy_for(of(waiter)) > 5

    def test_that_ran_out_or_is_gone_is_taken_anew(self, line: Line) -> None:
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

    def test_of_who_leaves_is_removed(self, line: Line) -> None:
        waiter = join(line)
        waiter.outcome.give_up()
        look(line)
        assert not Ticket.objects.exists()
        assert line.waiters == []

    def test_of_who_leaves_passes_on_what_it_was_given(self, line: Line) -> None:
        row = new(Proxy)
        held, waiter, behind = hold(row), join(line), ticket(Proxy)
        held.release()
        waiter.outcome.give_up()
        look(line)
        assert given(behind) == [(row.pk, 3)]
        assert list(Ticket.objects.all()) == [behind]

    def test_of_who_leaves_passes_on_what_it_has_collected(self, line: Line) -> None:
        rows = several(Proxy, 2)
        held, waiter = [hold(row) for row in rows], join(line, count=2)
        held[0].release()
        look(line)
        waiter.outcome.give_up()
        look(line)
        assert columns(rows[0])["holder"] == ""
        assert busy_for(rows[0]) <= 0
        assert not Ticket.objects.exists()

    def test_is_removed_at_the_end_of_the_process_and_what_it_was_given_is_passed_on(self, line: Line) -> None:
        row = new(Proxy)
        held, _waits, served, behind = hold(row), join(line), join(line, priority=-1), ticket(Proxy, priority=9)
        held.release()
        assert given(of(served)) == [(row.pk, 2)]
        line.close()
        assert list(Ticket.objects.all()) == [behind]
        assert given(behind)[0][0] == row.pk


class TestSeveral:
    def test_are_collected_and_had_when_they_are_all_there(self, line: Line) -> None:
        rows = several(Proxy, 2)
        held, waiter = [hold(row) for row in rows], join(line, count=2)
        held[0].release()
        look(line)
        assert not waiter.has_left
        assert given(of(waiter)) == [(rows[0].pk, 2)]
        held[1].release()
        look(line)
        assert {(lease.pk, lease.fence) for lease in leases(waiter)} == {(row.pk, 2) for row in rows}
        assert all(59 < busy_for(row) <= 60 for row in rows), "renewed when they were complete"

    def test_are_renewed_together_with_the_ticket(self, line: Line, process_clock: Clock) -> None:
        row = several(Proxy, 2)[0]
        held, waiter = hold(row), join(line, count=2)
        look(line)
        held.release()
        look(line)
        assert waiter.holds == ((row.pk, 2),)
        change(row, busy_before=DbLater(2))
        assert busy_for(row) < 4
        process_clock.advance(TICKET_TTL / 3)
        look(line)
        assert busy_for(row) > 5

    def test_one_of_which_has_run_out_meanwhile_are_not_believed(self, line: Line) -> None:
        rows = several(Proxy, 2)
        held, waiter = [hold(row) for row in rows], join(line, count=2)
        held[0].release()
        steal(rows[0])
        held[1].release()
        look(line)
        assert not waiter.has_left
        assert columns(rows[0])["holder"] == "thief"
        assert columns(rows[1])["holder"] == "", "given back: it stands in line anew"
        look(line)
        assert in_line() == ["me"]

    def test_that_block_each_other_are_taken_apart(self, line: Line, process_clock: Clock) -> None:
        """Each has what the other one lacks; the first in line gets it."""
        rows = several(Proxy, 2)
        held, usual = [hold(row) for row in rows], join(line, count=2, holder="usual")
        held[0].release()
        urgent = join(line, count=2, holder="urgent", priority=-1)
        held[1].release()
        for _ in range(8):
            look(line)
            process_clock.advance(0.5)
        assert {lease.pk for lease in leases(urgent)} == {row.pk for row in rows}
        assert not usual.has_left


class TestLearning:
    """How soon newcomers look is learned from those who are served."""

    def test_the_speed_of_the_line_from_the_tickets_that_are_served(
        self, line: Line, process_clock: Clock
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
        assert newcomer.look_at - newcomer.began > 10 * SHORTEST

    @pytest.mark.only("mysql", "postgresql")  # where a release gives to the first in line in one statement
    def test_the_speed_of_the_line_from_releases_to_other_processes(self, process_clock: Clock) -> None:
        row = new(Proxy)
        for _ in range(2):
            first = ticket(Proxy)
            hold(row).release()
            expire(row)
            process_clock.advance(0.3)
        assert given(first)
        for _ in range(3):
            last = ticket(Proxy)
        assert speed_of(Proxy, "default").first_pause(last.pk, process_clock()) > 10 * SHORTEST


class TestStatements:
    def test_ten_waiters_cost_no_more_than_one(self, line: Line) -> None:
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

    def test_nobody_is_looked_for_before_it_is_due(self, line: Line, process_clock: Clock) -> None:
        hold(new(Proxy))
        waiter = join(line)
        look(line)
        waiter.look_at = waiter.free_at = process_clock() + 3
        with CaptureQueriesContext(connection) as sent:
            again_at = line.turn(noticed=False)
        assert len(sent) == 0
        assert again_at <= waiter.look_at


def test_a_waiter_that_stands_far_back_leaves_free_rows_to_the_first(line: Line, process_clock: Clock) -> None:
    row = new(Proxy)
    hold(row, holder="dead")
    for number in range(4):
        ticket(Proxy, holder=f"number {number}")
    waiter = join(line)
    process_clock.advance(1.5)
    look(line)
    assert waiter.is_near is False
    expire(row)
    process_clock.advance(1.5)
    look(line)
    assert columns(row)["holder"] == "dead", "one of those in front gives it out"
    assert verbs.claim(connection, Proxy, row.pk, waiter.request.terms) is not None
