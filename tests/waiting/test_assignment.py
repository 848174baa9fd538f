"""Free rows are assigned to waiters, and collected rows that block other waiters are reclaimed."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect import DbLater
from resourcepool.leases import free_rows
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import assignment, handover, tickets
from tests import running
from tests.app.rows import busy_for, change, columns, granted, hold, new, several, steal
from tests.concurrency.tickets import in_line
from tests.waiting.handover_helpers import DE, US, everything, waiting_ticket
from tests.waiting.threads import given, ticket


class TestAssignment:
    def test_serves_in_the_order_of_the_line_longest_idle_row_first(self) -> None:
        rows = several(Proxy, 3)
        for age, row in zip((1, 3, 2), rows, strict=True):
            change(row, busy_before=DbLater(-age))
        usual, late, urgent = ticket(Proxy), ticket(Proxy, priority=5), ticket(Proxy, priority=-5)
        assigned = assignment.assign_free_rows(connection, Proxy)
        assert assigned.given == {
            urgent.pk: ((rows[1].pk, 1),),
            usual.pk: ((rows[2].pk, 1),),
            late.pk: ((rows[0].pk, 1),),
        }
        assert given(urgent) == [(rows[1].pk, 1)]

    def test_gives_one_ticket_only_the_rows_that_are_due_to_it(self) -> None:
        rows = several(Proxy, 2)
        earlier, mine, later = ticket(Proxy), ticket(Proxy), ticket(Proxy)
        by_later, by_mine = [
            assignment.assign_free_rows(connection, Proxy, only=[only.pk]) for only in (later, mine)
        ]
        assert [len(given(one)) for one in (earlier, mine, later)] == [0, 1, 0]
        assert (len(by_later.seen.free), by_later.spare) == (2, 0), "free, but due to others"
        assert by_mine.spare == 0
        assert given(mine)[0][0] in {row.pk for row in rows}

    def test_gives_each_waiter_matching_rows(self) -> None:
        us, de = new(Proxy, country="US"), new(Proxy, country="DE")
        french, german, any_one = (ticket(Proxy, selector=s) for s in ('{"country": "FR"}', DE, "{}"))
        assignment.assign_free_rows(connection, Proxy)
        assert (given(french), given(german), given(any_one)) == ([], [(de.pk, 1)], [(us.pk, 1)])

    def test_gives_nothing_that_is_held_rests_or_is_out_of_service(self) -> None:
        held, rests, out = several(Proxy, 3)
        hold(held)
        hold(rests, cooldown=60).release()
        Proxy.objects.filter(pk=out.pk).drain("broken")
        waits = ticket(Proxy)
        seen, done, spare = assignment.assign_free_rows(connection, Proxy)
        assert (seen, done, spare, given(waits)) == (({}, None), {}, 0, [])

    def test_returns_when_the_next_row_may_be_free_if_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(free_rows, "LOOKAHEAD", 1_000.0)  # seconds: a slow test is no late one
        one, another = several(Proxy, 2)
        hold(one, cooldown=6_000).release()
        hold(another, cooldown=600).release()
        seen = assignment.assign_free_rows(connection, Proxy).seen
        assert not seen.free
        assert 599 - running.seconds() < (seen.next_in or 0) < 600.001  # a moment is rounded

    def test_returns_the_free_rows_without_waiters(self) -> None:
        row = new(Proxy)
        seen, done, spare = assignment.assign_free_rows(connection, Proxy)
        assert (seen.free, seen.next_in, done, spare) == ({row.pk: 0}, None, {}, 1)
        assert columns(row)["fence"] == 0

    def test_skips_rows_that_were_claimed_meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one, another = several(Proxy, 2)
        first, second = ticket(Proxy), ticket(Proxy)
        allot = assignment.allot

        def too_slow(*args: Any) -> Any:
            granted(one, "faster")
            return allot(*args)

        monkeypatch.setattr(assignment, "allot", too_slow)
        assignment.assign_free_rows(connection, Proxy)
        assert columns(one)["holder"] == "faster"
        assert (given(first), given(second)) == ([(another.pk, 1)], [])

    def test_skips_no_waiter_during_concurrent_assignments(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of two concurrent scans, one reads the rows before the other serves the first waiter, and the line after."""
        one, another = several(Proxy, 2)
        served, first, second = ticket(Proxy), ticket(Proxy), ticket(Proxy)
        in_line = tickets.in_line

        def too_late(*args: Any, **options: Any) -> Any:
            assert handover.give(connection, Proxy, one.pk, 0, waiting_ticket(served))
            return in_line(*args, **options)

        monkeypatch.setattr(tickets, "in_line", too_late)
        assignment.assign_free_rows(connection, Proxy)
        assert (given(served), given(first), given(second)) == ([(one.pk, 1)], [(another.pk, 1)], [])

    def test_gives_unneeded_rows_to_the_next_waiter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one, another = several(Proxy, 2)
        served, first, second = ticket(Proxy), ticket(Proxy), ticket(Proxy)
        allot = assignment.allot

        def too_slow(*args: Any) -> Any:
            assert handover.give(connection, Proxy, one.pk, 0, waiting_ticket(served))
            return allot(*args)

        monkeypatch.setattr(assignment, "allot", too_slow)
        assignment.assign_free_rows(connection, Proxy)
        assert (given(served), given(first), given(second)) == ([(one.pk, 1)], [(another.pk, 1)], [])

    def test_to_a_ticket_for_several_gives_the_available_rows(self) -> None:
        rows = several(Proxy, 2)
        collects, behind = ticket(Proxy, count=3), ticket(Proxy)
        assignment.assign_free_rows(connection, Proxy)
        assert {pk for pk, _ in given(collects)} == {row.pk for row in rows}
        assert columns(collects)["is_waiting"]
        assert given(behind) == []

    def test_to_all_reads_every_selector(self) -> None:
        us = new(Proxy, country="US")
        several(Proxy, handover.FIRST_TICKETS + 1, country="DE")
        waits = ticket(Proxy, selector=US)
        assignment.assign_to_all(connection, Proxy)
        assert given(waits) == [(us.pk, 1)]


class TestReclaiming:
    def collecting(self, row: Any, **fields: Any) -> Ticket:
        """Return a ticket for two rows that has this one."""
        one = ticket(Proxy, count=2, **fields)
        assert handover.give(connection, Proxy, row.pk, columns(row)["fence"], waiting_ticket(one))
        return one

    def test_frees_what_one_that_came_later_with_a_better_priority_lacks(self) -> None:
        one, another = several(Proxy, 2)
        usual = self.collecting(one)
        urgent = self.collecting(another, priority=-1)
        assignment.reclaim_from_later(connection, Proxy)
        assert (given(usual), columns(usual)["is_waiting"], columns(usual)["fence"]) == ([], True, 3)
        assert (columns(one)["fence"], columns(one)["holder"]) == (2, "")
        assert busy_for(one) <= 0
        assert given(urgent) == [(another.pk, 1)]
        assignment.assign_free_rows(connection, Proxy)
        assert sorted(given(urgent)) == sorted([(another.pk, 1), (one.pk, 3)])
        assert in_line() == ["stranger"]

    def full(self, rows: Sequence[Any], count: int, **fields: Any) -> Ticket:
        """Return a ticket for ``count`` rows that has these."""
        one = ticket(Proxy, count=count, **fields)
        for row in rows:
            assert handover.give(connection, Proxy, row.pk, columns(row)["fence"], waiting_ticket(one))
        return one

    def test_frees_all_that_is_needed_in_one_turn(self) -> None:
        rows = several(Proxy, 5)
        usual = self.full(rows[:4], 5)
        ticket(Proxy, count=3, priority=-1)
        assignment.reclaim_from_later(connection, Proxy)
        assert len(given(usual)) == 1
        assert columns(usual)["is_waiting"]
        assert [busy_for(row) <= 0 for row in rows[:4]] == [True, True, True, False]
        assignment.assign_free_rows(connection, Proxy)
        assert Ticket.objects.filter(priority=-1, is_waiting=False).exists()

    def test_frees_no_more_than_is_needed(self) -> None:
        rows = several(Proxy, 4)
        usual = self.full(rows[:3], 4)
        ticket(Proxy, priority=-1)
        assignment.reclaim_from_later(connection, Proxy)
        assert len(given(usual)) == 2

    def test_the_last_in_line_gives_first(self) -> None:
        rows = several(Proxy, 4)
        first = self.full(rows[:2], 3)
        last = self.full(rows[2:], 3, priority=1)
        ticket(Proxy, count=3, priority=-1)
        assignment.reclaim_from_later(connection, Proxy)
        assert (len(given(first)), len(given(last))) == (1, 0)

    def test_rows_for_a_middle_ticket_are_reclaimed_from_the_last(self) -> None:
        rows = several(Proxy, 4)
        urgent = self.full(rows[:1], 2, priority=-1)
        middle, last = self.full(rows[1:2], 2), self.full(rows[2:], 3, priority=1)
        assignment.reclaim_from_later(connection, Proxy)
        assert (len(given(urgent)), len(given(middle)), len(given(last))) == (1, 1, 0)

    def test_of_several_selectors_only_what_fits_is_freed(self) -> None:
        german, american = several(Proxy, 2, country="DE"), several(Proxy, 2, country="US")
        usual = self.full([*german, *american], 5)
        ticket(Proxy, count=3, priority=-1, selector=DE)
        assignment.reclaim_from_later(connection, Proxy)
        assert {pk for pk, _ in given(usual)} == {row.pk for row in american}

    def test_a_row_that_expired_and_was_taken_by_another_is_not_freed(self) -> None:
        rows = several(Proxy, 3)
        usual = self.full(rows[:2], 3)
        steal(rows[0])
        ticket(Proxy, count=2, priority=-1)
        assignment.reclaim_from_later(connection, Proxy)
        assert columns(rows[0])["holder"] == "thief"
        assert given(usual) == [(rows[0].pk, 1)]

    def test_frees_nothing_more_of_a_ticket_that_was_completed_in_the_middle(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = several(Proxy, 3)
        usual = self.full(rows[:2], 3)
        ticket(Proxy, count=2, priority=-1)
        take_from = handover.take_from

        def completed_meanwhile(*args: Any) -> bool:
            done = take_from(*args)
            for row in Proxy.objects.available():
                handover.give(connection, Proxy, row.pk, row.fence, waiting_ticket(usual))
            return done

        monkeypatch.setattr(handover, "take_from", completed_meanwhile)
        assignment.reclaim_from_later(connection, Proxy)
        assert len(given(usual)) == 3
        assert all(columns(row)["holder"] == "stranger" for row in rows)

    def test_does_not_reclaim_rows_that_no_earlier_ticket_needs(self) -> None:
        row = new(Proxy, country="US")
        self.collecting(row)
        ticket(Proxy, priority=-1, selector=DE)
        before = everything()
        assignment.reclaim_from_later(connection, Proxy)
        assert everything() == before

    def test_does_not_reclaim_rows_of_the_first_ticket(self) -> None:
        row = new(Proxy)
        self.collecting(row)
        ticket(Proxy, count=2)
        before = everything()
        assignment.reclaim_from_later(connection, Proxy)
        assert everything() == before

    def test_leaves_alone_a_ticket_that_was_completed_meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one, another = several(Proxy, 2)
        usual = self.collecting(one)
        ticket(Proxy, priority=-1)
        in_line = tickets.in_line

        def served_meanwhile(*args: Any, **options: Any) -> Any:
            line = in_line(*args, **options)
            assert handover.give(connection, Proxy, another.pk, 0, waiting_ticket(usual))
            return line

        monkeypatch.setattr(tickets, "in_line", served_meanwhile)
        assignment.reclaim_from_later(connection, Proxy)
        assert given(usual) == [(one.pk, 1), (another.pk, 1)]
        assert columns(one)["holder"] == "stranger"


@pytest.mark.only("mysql", "postgresql")
def test_a_free_row_locked_by_a_transaction_blocks_no_waiter(
    other: BaseDatabaseWrapper,
) -> None:
    """It would until that one ends."""
    row, waits = new(Proxy), ticket(Proxy)
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("SELECT id FROM resourcepool_proxy WHERE id = %s FOR UPDATE", [row.pk])
        assignment.assign_free_rows(connection, Proxy)
    assert not given(waits)
    other.rollback()
    assignment.assign_free_rows(connection, Proxy)
    assert given(waits)
