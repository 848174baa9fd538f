"""The tickets of waiters."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Self

from django.db import models

from resourcepool.db.dialect import KeyField
from resourcepool.leases.models import AbstractLease, LeaseQuerySet
from resourcepool.text import CharField, TextField
from resourcepool.translation import gettext_lazy as _


@lru_cache
def pool_name(model: Any) -> str:
    """Return the value of ``Ticket.pool`` for rows of ``model``; a proxy model shares the line of its base."""
    return str(model._meta.concrete_model._meta.label_lower)


def _line_name(model: Any, selector: str) -> str:
    """Return the name of the line of tickets with this selector."""
    pool = pool_name(model)
    return f"{pool}:{selector}" if model.line_per_name else pool


line_name: Callable[[Any, str], str] = lru_cache(1_000)(_line_name)


def selector_of(model: Any, pk: Any) -> str:
    """Return a selector in the line for the row with this key; "{}" if all rows of the model share a line."""
    return str(model.name_of(pk)) if model.line_per_name else "{}"


class TicketQuerySet(LeaseQuerySet):
    """Filters for tickets."""

    def waiting(self) -> Self:
        """Live tickets that have not got all their rows."""
        return self.held().filter(is_waiting=True)

    def for_rows_of(self, model: Any) -> Self:
        """Tickets for rows of this model."""
        pool = pool_name(model)
        return self.filter(pool__begins=f"{pool}:") if model.line_per_name else self.filter(pool=pool)

    def in_line_for(self, model: Any, selector: str) -> Self:
        """Tickets in the line of this selector."""
        return self.filter(pool=line_name(model, selector))


class Ticket(AbstractLease):
    """The place of a waiter in the line for rows of one pool.

    A ticket is itself a leased row, so the ticket of a crashed waiter expires. Tickets are served by ``priority``
    (lowest first), then by arrival. The fence goes up with every row that the ticket gets.
    """

    emits_events: ClassVar[bool] = False

    pool = KeyField(_("pool"), max_length=255, editable=False)
    selector = TextField(_("selector"), default="{}", editable=False)
    count = models.PositiveIntegerField(_("rows requested"), default=1, editable=False)
    priority = models.IntegerField(_("priority"), default=0, editable=False)
    asked_at = models.DateTimeField(_("requested at"), editable=False)
    address = models.PositiveIntegerField(
        _("address"), default=0, editable=False, help_text=_("The address of the process, for hints.")
    )
    grant_us = models.BigIntegerField(
        _("grant duration (µs)"),
        default=6_000_000,
        editable=False,
        help_text=_("Microseconds for which a row stays granted to the ticket until it is renewed."),
    )
    granted = CharField(
        _("granted"),
        max_length=500,
        default="[]",
        editable=False,
        help_text=_("The granted row, as JSON."),
    )
    # A separate column: MariaDB creates a file for each UPDATE of two tables that writes a text of unlimited length.
    collected = TextField(
        _("collected"),
        default="[]",
        editable=False,
        help_text=_("The rows granted so far, if several are requested."),
    )
    is_waiting = models.BooleanField(_("waiting"), default=True, editable=False)

    objects: ClassVar[Any] = TicketQuerySet.as_manager()

    class Meta:
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        indexes = [
            models.Index(fields=["pool", "is_waiting", "priority", "id"], name="resourcepool_ticket_in_line")
        ]

    def __str__(self) -> str:
        return f"{self.pool} #{self.pk}"
