"""The statements on tickets: order, renewal, removal."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.leases.terms import default_holder
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import tickets
from resourcepool.waiting.source import release
from tests import running
from tests.app.models import Device
from tests.app.rows import busy_for, change, columns, expire, granted, lasts, new
from tests.concurrency.connection_cutter import wired
from tests.waiting.threads import ticket

US, DE = '{"country": "US"}', '{"country": "DE"}'


def in_line(most: int = 10) -> list[int]:
    return [place.pk for place in tickets.in_line(connection, Proxy, most)]


def taken(model: Any = Proxy, count: int = 1, **wishes: Any) -> tickets.NewTicket:
    return tickets.take(connection, model, model.pool.request(count, wishes), "me")


class TestTheLine:
    def test_order_is_by_priority_then_by_arrival(self) -> None:
        late, usual, urgent, usual_too = (ticket(Proxy, priority=number) for number in (5, 0, -1, 0))
        assert in_line() == [urgent.pk, usual.pk, usual_too.pk, late.pk]
        assert in_line(most=2) == [urgent.pk, usual.pk]

    def test_expired_served_and_other_tickets_are_not_in_line(self) -> None:
        ticket(Proxy, seconds=-1)
        ticket(Proxy, is_waiting=False, granted="[[1, 2]]")
        ticket(Device)
        last = ticket(Proxy)
        assert in_line() == [last.pk]

    def test_in_line_returns_the_data_for_a_release(self) -> None:
        one = ticket(Proxy, selector=US, count=3, collected="[[7, 2]]", fence=4, grant_us=500_000, address=1234)
        (place,) = tickets.in_line(connection, Proxy)
        assert (place.pk, place.fence, place.selector, place.count) == (one.pk, 4, US, 3)
        assert (place.holds, place.lacks) == (((7, 2),), 2)
        assert (place.holder, place.grant_us, place.address) == ("stranger", 500_000, 1234)

    def test_first_returns_the_first_tickets_with_the_same_selector(self) -> None:
        ticket(Proxy, selector=DE)
        first, second, _third = (ticket(Proxy, selector=US) for _ in range(3))
        urgent = ticket(Proxy, selector=US, priority=-1)
        assert tickets.first(connection, Proxy, US, 3) == [urgent.pk, first.pk, second.pk]

    def test_each_selector_is_returned_once(self) -> None:
        for selector in (US, DE, US, "{}"):
            ticket(Proxy, selector=selector)
        ticket(Proxy, selector='{"country": "FR"}', seconds=-1)
        assert sorted(tickets.selectors(connection, Proxy)) == sorted([US, DE, "{}"])


class TestTaking:
    def test_puts_the_caller_at_the_end(self) -> None:
        before = ticket(Proxy)
        one = taken(holder="me", country="US", priority=0)
        assert in_line() == [before.pk, one.pk]
        row = columns(Ticket.objects.get(pk=one.pk))
        assert (row["holder"], row["selector"], row["count"], row["granted"]) == ("me", US, 1, "[]")

    @pytest.mark.parametrize(("ttl", "count", "given"), [(60, 1, 6), (2, 1, 2), (2, 2, 6)])
    def test_the_grant_lasts_as_long_as_the_ticket_but_not_beyond_the_ttl(
        self, ttl: float, count: int, given: float
    ) -> None:
        """A ticket for several rows renews them together with itself."""
        one = taken(ttl=ttl, count=count)
        assert one.grant_seconds == given
        assert columns(Ticket.objects.get(pk=one.pk))["grant_us"] == given * 1_000_000
        assert lasts(Ticket.objects.get(pk=one.pk), 6)


class TestLooking:
    def test_returns_the_state_of_existing_tickets(self) -> None:
        waits, dead = ticket(Proxy), ticket(Proxy, seconds=-1)
        served = ticket(Proxy, is_waiting=False, granted="[[7, 2]]", fence=2)
        gone = ticket(Proxy)
        gone_key = gone.pk
        gone.delete()
        seen = tickets.look(connection, [waits.pk, dead.pk, served.pk, gone_key])
        assert {pk: (one.fence, one.granted, one.is_waiting, one.left > 0) for pk, one in seen.items()} == {
            waits.pk: (1, (), True, True),
            dead.pk: (1, (), True, False),
            served.pk: (2, ((7, 2),), False, True),
        }

    def test_returns_the_time_left_of_the_granted_row(self) -> None:
        row = new(Proxy)
        fence, one = granted(row).fence, ticket(Proxy, seconds=3_000, grant_us=400_000_000)
        assert release(connection, Proxy, row.pk, fence, trusted_until=0.0)
        assert 399 - running.seconds() < tickets.look(connection, [one.pk])[one.pk].left < 400.001
        assert lasts(row, 400)

    def test_of_a_ticket_for_several_returns_its_remaining_life(self) -> None:
        row = new(Proxy)
        fence, one = granted(row).fence, ticket(Proxy, seconds=3_000, count=2, grant_us=400_000_000)
        assert release(connection, Proxy, row.pk, fence, trusted_until=0.0)
        assert 2_999 - running.seconds() < tickets.look(connection, [one.pk])[one.pk].left < 3_000.001


class TestRenewing:
    def test_renews_live_tickets_and_not_expired_ones(self) -> None:
        alive, dead = ticket(Proxy, seconds=1), ticket(Proxy, seconds=-1)
        tickets.renew(connection, [alive.pk, dead.pk])
        assert lasts(alive, 6)
        assert busy_for(dead) < 0

    def test_does_not_renew_a_served_ticket(self) -> None:
        served = ticket(Proxy, seconds=1, is_waiting=False, granted="[[7, 2]]", fence=2)
        tickets.renew(connection, [served.pk])
        assert busy_for(served) <= 1


class TestLeaving:
    def test_leave_removes_tickets_without_rows_and_returns_whether_all_were_removed(self) -> None:
        one, another = ticket(Proxy), ticket(Proxy)
        assert tickets.leave(connection, [one.pk])
        change(another, fence=2, granted="[[7, 2]]", is_waiting=False)
        assert not tickets.leave(connection, [another.pk])
        assert list(Ticket.objects.values_list("pk", flat=True)) == [another.pk]

    def test_remove_deletes_a_ticket_with_rows(self) -> None:
        one = ticket(Proxy, fence=2, granted="[[7, 2]]", is_waiting=False)
        tickets.remove(connection, [one.pk])
        assert not Ticket.objects.exists()

    def test_expired_tickets_are_found_after_a_while(self) -> None:
        long_dead = ticket(Proxy, seconds=-61)
        ticket(Proxy, seconds=-59)
        ticket(Device, seconds=-61)
        assert tickets.expired_for(connection, Proxy, 60) == [long_dead.pk]


def test_keys_that_are_no_numbers_are_written_as_text() -> None:
    pk = "0191c7a2-0000-7000-8000-000000000000"
    assert tickets.written([(7, 2), (pk, 3)]) == f'[[7, 2], ["{pk}", 3]]'


def test_an_expired_ticket_is_not_in_line() -> None:
    one = ticket(Proxy)
    assert in_line() == [one.pk]
    expire(one)
    assert in_line() == []


@pytest.mark.only("mysql", "postgresql")  # SQLite has no reply that could be lost
def test_a_ticket_is_taken_once_when_the_reply_is_lost() -> None:
    with wired() as (wire, own):
        wire.cut_after("INSERT INTO resourcepool_ticket")
        got = tickets.take(own, Proxy, Proxy.pool.request(1, {}), default_holder())
        assert wire.cuts == 1
    assert [one.pk for one in Ticket.objects.all()] == [got.pk]
