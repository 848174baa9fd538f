"""Tickets: how soon a dead waiter's lapses, and who stands in line."""

from django.conf import settings

from resourcepool.models import Ticket


def lapse_after(seconds: float) -> None:
    """In a child process: let the tickets that it takes lapse so soon after its death."""
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "TICKET_TTL": seconds}


def in_line() -> list[str]:
    """Return the holders' names of the live tickets, in the order of service."""
    return list(Ticket.objects.held().order_by("priority", "pk").values_list("holder", flat=True))
