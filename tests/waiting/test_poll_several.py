"""Requests for several rows collect them one by one."""

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import BadOption
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import tickets
from resourcepool.waiting.poll import Poller
from tests.app.rows import busy_for, change, columns, hold, lasts, several, steal
from tests.committed import Clock
from tests.concurrency.tickets import in_line
from tests.waiting.loop_turns import TICKET_TTL, join, leases, look, of, then
from tests.waiting.threads import given, ticket


class TestSeveral:
    def test_are_collected_and_served_when_complete(self, line: Poller) -> None:
        rows = several(Proxy, 2)
        held, waiter = [hold(row) for row in rows], join(line, count=2)
        held[0].release()
        look(line)
        assert not waiter.is_done
        assert given(of(waiter)) == [(rows[0].pk, 2)]
        held[1].release()
        look(line)
        assert {(lease.pk, lease.fence) for lease in leases(waiter)} == {(row.pk, 2) for row in rows}
        assert all(lasts(row, 60) for row in rows), "renewed when they were complete"

    def test_are_renewed_together_with_the_ticket(self, line: Poller, process_clock: Clock) -> None:
        process_clock.stop()  # or a slow machine finds the other row too soon
        row = several(Proxy, 2)[0]
        held, waiter = hold(row), join(line, count=2)
        look(line)
        held.release()
        look(line)
        assert waiter.holds == ((row.pk, 2),)
        change(row, busy_before=DbLater(4))  # long enough for a slow machine
        assert busy_for(row) <= 4
        process_clock.advance(TICKET_TTL / 3)
        look(line)
        assert lasts(row, TICKET_TTL)

    def test_of_which_one_has_expired_are_not_trusted(self, line: Poller) -> None:
        rows = several(Proxy, 2)
        held, waiter = [hold(row) for row in rows], join(line, count=2)
        held[0].release()
        steal(rows[0])
        held[1].release()
        look(line)
        assert not waiter.is_done
        assert columns(rows[0])["holder"] == "thief"
        assert columns(rows[1])["holder"] == "", "released: it has a new ticket"
        look(line)
        assert in_line() == ["me"]

    def test_that_block_each_other_are_reclaimed(self, line: Poller, process_clock: Clock) -> None:
        """Each holds a row that the other one needs; the first in line gets it."""
        rows = several(Proxy, 2)
        held, usual = [hold(row) for row in rows], join(line, count=2, holder="usual")
        held[0].release()
        urgent = join(line, count=2, holder="urgent", priority=-1)
        held[1].release()
        for _ in range(8):
            look(line)
            process_clock.advance(0.5)
        assert {lease.pk for lease in leases(urgent)} == {row.pk for row in rows}
        assert not usual.is_done

    def test_of_which_one_is_retired_meanwhile_are_refused(self, line: Poller, process_clock: Clock) -> None:
        """It would keep the others from everybody until its timeout."""
        rows = several(Proxy, 2)
        held, waiter, behind = [hold(row) for row in rows], join(line, count=2), ticket(Proxy)
        held[0].release()
        Proxy.objects.filter(pk=rows[1].pk).retire()
        process_clock.advance(2)
        look(line)
        with pytest.raises(BadOption, match=r"^count=2 is not allowed: it must be at most 1, "):
            leases(waiter)
        look(line)
        assert given(behind) == [(rows[0].pk, 3)]

    def test_given_while_it_leaves_are_released(self, line: Poller, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another row arrives after the check of the ticket, before the ticket is removed."""
        rows = several(Proxy, 3)
        held, waiter = [hold(row) for row in rows], join(line, count=3)
        held[0].release()

        def give_one_more() -> None:
            monkeypatch.undo()
            held[1].release()
            assert len(given(of(waiter))) == 2

        waiter.outcome.cancel()
        monkeypatch.setattr(tickets, "look", then(tickets.look, give_one_more))
        look(line)
        assert not Ticket.objects.exists()
        assert [columns(row)["holder"] for row in rows[:2]] == ["", ""]
