"""The tickets of waiters."""

from functools import lru_cache
from typing import Any, ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from resourcepool.dialect import KeyField
from resourcepool.leases.models import AbstractLease, LeaseQuerySet
from resourcepool.text import CharField, TextField


@lru_cache
def pool_name(model: Any) -> str:
    """Return the name under which tickets for rows of ``model`` are stored; a proxy model shares its base's line."""
    return str(model._meta.concrete_model._meta.label_lower)


def line_name(model: Any, selector: str) -> str:
    """Return the name of the line in which a ticket with this selector stands."""
    pool = pool_name(model)
    return f"{pool}:{selector}" if model.line_per_name else pool


def selector_of(model: Any, pk: Any) -> str:
    """Return a selector of the line in which one waits for the row with this key; "{}" where all rows have one line."""
    return str(model.name_of(pk)) if model.line_per_name else "{}"


class TicketQuerySet(LeaseQuerySet):
    """Filters over tickets."""

    def waiting(self) -> Self:
        """Tickets that are alive and have not got all their rows."""
        return self.held().filter(is_waiting=True)

    def for_rows_of(self, model: Any) -> Self:
        """Tickets for rows of this model."""
        pool = pool_name(model)
        return self.filter(pool__begins=f"{pool}:") if model.line_per_name else self.filter(pool=pool)

    def in_line_for(self, model: Any, selector: str) -> Self:
        """Tickets in the line in which one with this selector stands."""
        return self.filter(pool=line_name(model, selector))


class Ticket(AbstractLease):
    """A place in line for rows of one pool. It is itself a leased row, so a dead waiter drops out by itself.

    Served by ``priority`` (lowest first), then by arrival. Its fence goes up with every row that it gets.
    """

    emits_events: ClassVar[bool] = False

    pool = KeyField(_("pool"), max_length=255, editable=False)
    selector = TextField(_("selector"), default="{}", editable=False)
    count = models.PositiveIntegerField(_("how many"), default=1, editable=False)
    priority = models.IntegerField(_("priority"), default=0, editable=False)
    asked_at = models.DateTimeField(_("asked at"), editable=False)
    address = models.PositiveIntegerField(
        _("address"), default=0, editable=False, help_text=_("Of the process that hints are sent to.")
    )
    grant_us = models.BigIntegerField(
        _("lasts"),
        default=6_000_000,
        editable=False,
        help_text=_("For how many microseconds a row that it is given is its own, until that is renewed."),
    )
    granted = CharField(
        _("granted"),
        max_length=500,
        default="[]",
        editable=False,
        help_text=_("The row it was given, as JSON."),
    )
    # In a separate column: MariaDB creates a file for each UPDATE of two tables that writes a text of unlimited length.
    collected = TextField(
        _("collected"),
        default="[]",
        editable=False,
        help_text=_("The rows it was given so far, if it wants several."),
    )
    is_waiting = models.BooleanField(_("is waiting"), default=True, editable=False)

    objects: ClassVar[Any] = TicketQuerySet.as_manager()

    class Meta:
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        indexes = [
            models.Index(fields=["pool", "is_waiting", "priority", "id"], name="resourcepool_ticket_in_line")
        ]

    def __str__(self) -> str:
        return f"{self.pool} #{self.pk}"
