"""How many leases there are just now."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect import DbLater
from resourcepool.leases import verbs
from resourcepool.leases.table import Model
from resourcepool.waiting.models import Ticket

LONG_AGO = 60.0  # seconds after which a ticket should have been tidied away


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases on the rows of one model.

    Attributes:
        live: running.
        expired: ran out without a release, so their holders died or hung; free for the next claim.
    """

    model: str
    live: int
    expired: int


@dataclass(frozen=True, slots=True)
class Tickets:
    """Who stands in line, and how many tickets their owners have left behind."""

    live: int
    orphaned: int


def leases(connection: BaseDatabaseWrapper, leased: Sequence[Model]) -> list[Leases]:
    """Count the leases of each of these models, tickets apart."""
    return [
        Leases(model._meta.label, rows.held().count(), rows.expired().count())
        for model in leased
        if model is not Ticket
        for rows in [verbs.rows_of(connection, model)]
    ]


def tickets(connection: BaseDatabaseWrapper) -> Tickets:
    """Count those who wait, in all lines together."""
    rows = Ticket.objects.using(connection.alias)
    return Tickets(rows.waiting().count(), rows.filter(busy_before__lt=DbLater(-LONG_AGO)).count())
