"""How long a served waiter trusts the row that it was given."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.leases.terms import margin
from resourcepool.models import Proxy
from resourcepool.waiting import tickets
from resourcepool.waiting.poll import Poller
from tests import running
from tests.app.rows import busy_for, change, columns, expire, granted, hold, lasts, new, steal
from tests.committed import Clock
from tests.concurrency.tickets import in_line
from tests.waiting.loop_turns import TICKET_TTL, join, leases, look, of, then
from tests.waiting.threads import given, ticket


class TestTrust:
    def test_begins_when_the_look_that_found_it_was_sent(self, line: Poller, process_clock: Clock) -> None:
        held, waiter = hold(new(Proxy)), join(line)
        look(line)
        held.release()
        process_clock.advance(1)
        before = process_clock()
        look(line)
        after = process_clock()
        (lease,) = leases(waiter)
        assert before <= lease._trust.sent_at <= after

    def test_lasts_for_the_time_left_of_the_ticket(self, line: Poller) -> None:
        """The row was given at an unknown time before."""
        row = new(Proxy)
        held, waiter = hold(row), join(line)
        held.release()
        for one in (row, of(waiter)):
            change(one, busy_before=DbLater(4))
        look(line)
        trust = leases(waiter)[0]._trust
        assert 3.5 < round(trust.valid_for, 3) <= 4
        assert trust.until == trust.sent_at + trust.valid_for - margin(trust.valid_for)

    def test_lasts_for_the_tickets_life_until_the_first_renewal(self, line: Poller) -> None:
        row = new(Proxy)
        held, waiter = hold(row), join(line, ttl=60)
        held.release()
        assert lasts(row, TICKET_TTL)
        look(line)
        (lease,) = leases(waiter)
        assert lease.remaining < TICKET_TTL
        lease.renew()
        assert lasts(row, 60)
        assert lease.remaining > 57 - running.seconds()

    def test_lasts_no_longer_than_the_requested_ttl(self, line: Poller) -> None:
        row = new(Proxy)
        held, waiter = hold(row), join(line, ttl=1)
        held.release()
        assert busy_for(row) <= 1
        look(line)
        assert leases(waiter)[0].remaining <= 1

    def test_is_not_given_to_a_grant_that_expired_before_the_check(self, line: Poller) -> None:
        """After a pause, the process passes its row on and takes a new ticket."""
        row = new(Proxy)
        held, waiter, behind = hold(row), join(line), ticket(Proxy)
        held.release()
        for one in (row, of(waiter)):
            expire(one)
        look(line)
        assert not waiter.is_done
        assert given(behind) == [(row.pk, 3)]
        look(line)
        assert in_line() == ["me"]

    def test_is_not_given_to_a_grant_that_may_have_expired_before_the_reply(
        self, line: Poller, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        held, waiter, behind = hold(row), join(line), ticket(Proxy)
        held.release()
        with monkeypatch.context() as patch:
            patch.setattr(tickets, "look", then(tickets.look, lambda: process_clock.advance(TICKET_TTL - 0.5)))
            look(line)
        assert not waiter.is_done
        assert given(behind) == [(row.pk, 3)]

    def test_is_not_given_to_a_row_leased_by_another_process_since(self, line: Poller) -> None:
        row = new(Proxy)
        held, waiter = hold(row), join(line)
        held.release()
        expire(of(waiter))
        steal(row)
        look(line)
        assert not waiter.is_done
        assert columns(row)["holder"] == "thief"

    def test_is_given_to_a_new_grant_after_a_pause(self, line: Poller, process_clock: Clock) -> None:
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


def test_of_a_row_that_an_interruption_released_does_not_begin(
    line: Poller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while one thread makes the handle for another thread's waiter."""
    row = new(Proxy)
    held, waiter = hold(row), join(line)
    held.release()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(Proxy.pool), "handle", interrupted)
        look(line)
    assert granted(row).fence == 4, "another process has it"
    look(line)
    assert not waiter.is_done
    look(line)
    assert in_line() == ["me"]
