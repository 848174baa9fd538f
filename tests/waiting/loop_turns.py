"""Turns of the waiters' loop, taken in the thread of the test."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from resourcepool.leases.lease import Lease
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import tickets
from resourcepool.waiting.poll import Poller
from resourcepool.waiting.waiter import Waiter
from tests.committed import Clock

TICKET_TTL = 6.0


@pytest.fixture
def line(process_clock: Clock) -> Poller:
    process_clock.stop()  # on a slow machine looks at free rows would be due in between
    return Poller("default")


def join(line: Poller, model: Any = Proxy, count: int = 1, **wishes: Any) -> Waiter:
    """Add a waiter to this loop; only the turns of the test serve it."""
    request = model.pool.request(count, {"timeout": 60, "holder": "me", **wishes})
    ticket = tickets.take(connection, model, request, "me")
    waiter = Waiter(model.pool, "default", request, "me", began=ticket.sent_at)
    waiter.set_ticket(ticket)
    line.turns.waiters[waiter] = None
    return waiter


def look(line: Poller) -> None:
    line.turns._noticed |= {waiter.ticket.pk: None for waiter in line.turns.waiters if waiter.ticket}
    line.turns.take()


def of(waiter: Waiter) -> Ticket:
    assert waiter.ticket is not None
    return Ticket.objects.get(pk=waiter.ticket.pk)


def then(do: Callable[..., Any], and_then: Callable[[], object]) -> Callable[..., Any]:
    """Return a function that calls both and returns the result of the first."""

    def both(*args: Any) -> Any:
        done = do(*args)
        and_then()
        return done

    return both


def leases(waiter: Waiter) -> list[Lease]:
    """Return the leases of the waiter, which must have been served."""
    return waiter.outcome.result()
