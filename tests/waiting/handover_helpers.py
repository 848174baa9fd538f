"""Helpers for tests of hand-overs without a waiting process."""

from typing import Any

from django.db import connection

from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import source
from resourcepool.waiting.assignment import WaitingTicket
from tests.app.rows import columns
from tests.waiting.threads import given

US, DE = '{"country": "US"}', '{"country": "DE"}'


def release(row: Any, fence: int, trusted_until: float = 0.0) -> bool:
    return source.release(connection, type(row), row.pk, fence, trusted_until=trusted_until)


def waiting_ticket(one: Ticket) -> WaitingTicket:
    """Return the ticket as ``tickets.in_line`` would."""
    row = columns(one)
    holds = tuple((pk, fence) for pk, fence in given(one))
    about = (row["selector"], row["count"], holds, row["holder"], row["grant_us"], row["address"])
    return WaitingTicket(one.pk, row["fence"], *about)


def everything() -> list[Any]:
    return [list(model._base_manager.order_by("pk").values()) for model in (Proxy, Ticket)]
