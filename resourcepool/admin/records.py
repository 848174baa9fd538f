"""Samples, tickets, jobs and elections: read-only lists."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import duration_column, lines
from resourcepool.admin.containers import SystemAdmin
from resourcepool.admin.events import ActivityAdminMixin
from resourcepool.admin.filters import choice_filter
from resourcepool.elections.election import standbys
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.history.models import Sample
from resourcepool.jobs import Job
from resourcepool.resources.registry import resource_models
from resourcepool.status.elections import SYSTEM as ELECTIONS_SYSTEM
from resourcepool.status.resources.waiting import explain
from resourcepool.translation import gettext, gettext_lazy as _
from resourcepool.waiting.models import Ticket

SHOWN = 5  # standbys listed for an election
PoolFilter = choice_filter(
    "pool",
    _("pool"),
    lambda: [(model._meta.label_lower, model._meta.verbose_name_plural) for model in resource_models()],
)


@admin.register(Sample)
class SampleAdmin(ReadOnlyAdmin):
    """The state of each pool, minute by minute."""

    list_display = fields = (
        *("minute", "pool", "free", "leased", "away", "waiters"),
        *(duration_column("oldest_wait", _("longest wait")), "acquired", "lost"),
    )
    list_filter = (PoolFilter,)


@admin.register(Ticket)
class TicketAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """Waiters; tickets of served or crashed waiters stay until the next caller waits."""

    list_display = ("pool", "holder", "is_alive", "count", "priority", "asked_at", "selector")
    fields = (*list_display[:3], "why", *list_display[3:], "fence")
    list_filter = (PoolFilter,)
    search_fields = ("holder__startswith",)
    search_help_text = _("The start of the holder, such as a host name.")
    time_annotations = {"micros_left": "busy_before"}

    @admin.display(description=_("waiting"), boolean=True)
    def is_alive(self, ticket: Any) -> bool:
        return bool(ticket.micros_left > 0 and ticket.holder and ticket.is_waiting)

    @admin.display(description=_("why it is not served"))
    def why(self, ticket: Any) -> str:
        return explain(ticket)


@admin.register(Job)
class JobAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """Periodic jobs and their last runs."""

    list_display = (
        *("name", "done_at", duration_column("seconds", _("took"))),
        *("result", "failed_at", "holder", "busy_before"),
    )
    ordering = ("name",)
    fields = (*list_display, "fence")
    search_fields = ("name__begins",)
    search_help_text = _("The start of the name; case-sensitive.")


@admin.register(ElectionRow)
class ElectionAdmin(ActivityAdminMixin, SystemAdmin):
    """One row for each election; streams and jobs have their own lists."""

    system = ELECTIONS_SYSTEM
    search_fields = ("name",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_fields(request, obj), "waiting")

    @admin.display(description=_("standbys in order"))
    def waiting(self, row: Any) -> str:
        waiters = standbys(row._state.db, ElectionRow, row.name).order_by("priority", "pk")
        holders = list(waiters.values_list("holder", flat=True)[: SHOWN + 1])
        return lines("", *holders[:SHOWN], ".." if len(holders) > SHOWN else "") if holders else gettext("none")
