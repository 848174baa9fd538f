"""Helpers for tickets: their ttl, and the waiters in line."""

from typing import Any

from django.conf import settings

from resourcepool.models import Ticket


def lapse_after(seconds: float) -> None:
    """In a child process: set the ttl of its tickets."""
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "TICKET_TTL": seconds}


def in_line(**fields: Any) -> list[str]:
    """Return the holders' names of the live tickets with these fields, in the order of service."""
    tickets = Ticket.objects.waiting().filter(**fields).order_by("priority", "pk")
    return list(tickets.values_list("holder", flat=True))
