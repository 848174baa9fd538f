"""Ticket numbers beyond 32 bits: after 50 days at a thousand per second."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.models import Proxy, Ticket
from resourcepool.threads.signal_safe_event import SignalSafeEvent
from resourcepool.waiting.estimates import WaitEstimate, recent_waiters
from resourcepool.waiting.lease import release
from resourcepool.waiting.models import pool_name
from resourcepool.waiting.ticket_wakeups import TicketWakeups, ticket_wakeups
from tests.app.rows import granted, hold, new
from tests.eventually import InBackground, eventually
from tests.waiting.threads import ticket

LONG = 30.0  # seconds, which no test waits
LARGE = 2**32


@pytest.fixture(autouse=True)
def _numbers_are_large() -> Any:
    Ticket.objects.create(
        pk=LARGE + 1000, pool="none", asked_at="2020-01-01T00:00Z", busy_before="2020-01-01T00:00Z", fence=1
    )
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT SETVAL(PG_GET_SERIAL_SEQUENCE('resourcepool_ticket', 'id'), %s)", [LARGE + 1000]
            )


@pytest.fixture(autouse=True)
def _somebody_was_in_line_lately() -> None:
    recent_waiters.note(pool_name(Proxy), "default", had_to_wait=True)


def test_a_release_wakes_a_waiter_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WaitEstimate, "first_check_delay", lambda *_: LONG)
    told: list[bool] = []

    def wake(*given: Any) -> bool:
        told.append(TicketWakeups.wake(ticket_wakeups, *given))
        return told[-1]

    held = hold(new(Proxy))
    one = InBackground(lambda: Proxy.pool.acquire(timeout=60, holder="me"))
    eventually(
        lambda: any(isinstance(bell, SignalSafeEvent) for bell in list(ticket_wakeups._tickets.values()))
    )
    monkeypatch.setattr(ticket_wakeups, "wake", wake)
    held.release()
    assert one.result().fence == 2
    assert told == [True], "it does not only look by itself, 1.5 s after it came"


def test_the_speed_of_the_line_is_learned_from_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(WaitEstimate, "served", lambda self, number, now: seen.append(number))
    row, one = new(Proxy), ticket(Proxy)
    assert one.pk > LARGE
    assert release(connection, Proxy, row.pk, granted(row).fence, trusted_until=0.0)
    assert seen == [one.pk]
