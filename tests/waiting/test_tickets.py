"""Who stands in line, and in front of whom, as the database tells it."""

from typing import Any

from django.db import connection

from resourcepool.dialect import DbLater
from resourcepool.leases import search, tickets
from resourcepool.models import Proxy, Ticket
from tests.app.rows import new

LABEL = Proxy._meta.label_lower


def ticket(seconds: float = 60, **fields: Any) -> Ticket:
    return new(Ticket, pool=LABEL, busy_before=DbLater(seconds), **fields)


def in_line(most: int = 10) -> list[int]:
    return [place.ticket for place in tickets.in_line(connection, LABEL, most)]


def ahead(of: Ticket) -> tuple[int, bool, bool]:
    """Return what ``others_ahead`` says to the one behind this ticket."""
    new(Proxy)
    where = tickets.ahead(connection, LABEL, of.selector, of.priority, of.pk)
    seen = search.glance(connection, Proxy, Proxy.where("{}", connection), 1, where)
    return tickets.others_ahead(seen.ahead)


def test_a_lower_priority_number_comes_first_and_then_who_came_first() -> None:
    late, usual, urgent, usual_too = (ticket(priority=number) for number in (5, 0, -1, 0))
    assert in_line() == [urgent.pk, usual.pk, usual_too.pk, late.pk]
    assert in_line(most=2) == [urgent.pk, usual.pk]
    assert [ahead(one)[0] for one in (urgent, usual, usual_too, late)] == [0, 1, 2, 3]


def test_the_dead_and_those_of_other_pools_do_not_stand_in_line() -> None:
    ticket(-1)
    new(Ticket, pool="app.other", busy_before=DbLater(60))
    last = ticket()
    assert in_line() == [last.pk]
    assert ahead(last) == (0, False, False)


def test_who_is_skipped_does_not_count_and_is_told() -> None:
    sleeper, last = ticket(), ticket()
    tickets.skip(connection, [sleeper.pk], 60)
    assert in_line() == [last.pk]
    assert ahead(last) == (0, False, False)
    assert ahead(sleeper) == (0, False, True)


def test_somebody_in_front_who_wants_something_else_is_told_apart() -> None:
    ticket(selector='{"country":"DE"}')
    ticket(count=2)
    ticket()
    assert ahead(ticket()) == (1, True, False)
