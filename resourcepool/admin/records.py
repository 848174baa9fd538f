"""The line, the events, the samples and the jobs: to be read, never to be changed by hand."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import Max, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.generic import Admin
from resourcepool.admin.paging import CappedList, CappedPaginator
from resourcepool.admin.resources.filters import TextFilter
from resourcepool.admin.words import happened, moments, spans
from resourcepool.dialect import MicrosUntil
from resourcepool.events import shown
from resourcepool.history.models import Event, Sample
from resourcepool.jobs.models import Job
from resourcepool.resources.registry import resource_models
from resourcepool.signals import What
from resourcepool.waiting.models import Ticket

NEWEST = 100_000  # events that filters look at: no index serves every filter


class ReadOnlyAdmin(Admin):
    """Nobody adds, changes or deletes here."""

    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    actions = None
    sortable_by: ClassVar[tuple[str, ...]] = ()  # there is no index for it
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)

    class Media:
        css = {"all": ("resourcepool/admin.css",)}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CappedList]:
        """Return the list that does not count."""
        return CappedList


class PoolFilter(admin.SimpleListFilter):
    """By pool."""

    title, parameter_name = _("pool"), "pool"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [(model._meta.label_lower, model._meta.verbose_name_plural) for model in resource_models()]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(pool=self.value()) if self.value() else queryset


class WhatFilter(admin.SimpleListFilter):
    """By kind of event."""

    title, parameter_name = _("what"), "what"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return list(What.choices)

    def queryset(self, request: Any, queryset: Any) -> Any:
        if self.value() == What.ACQUIRED:
            return queryset.acquisitions()
        return queryset.filter(what=self.value()) if self.value() else queryset


class PastFilter(admin.SimpleListFilter):
    """By how long ago."""

    title, parameter_name = _("when"), "past"
    spans: ClassVar[dict[str, int]] = {"hour": 3_600, "day": 86_400, "week": 7 * 86_400}

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [("hour", _("past hour")), ("day", _("past 24 hours")), ("week", _("past 7 days"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        seconds = self.spans.get(self.value() or "")
        return queryset.since(seconds) if seconds else queryset


class EventHolderFilter(TextFilter):
    """By holder: those that begin so."""

    title, parameter_name, hint = _("holder"), "held_by", _("how it begins")

    def narrow(self, rows: Any, text: str) -> Any:
        return rows.filter(holder__startswith=text)


class ActorFilter(TextFilter):
    """By the operator."""

    title, parameter_name, hint = _("operator"), "by", _("the user's name")

    def narrow(self, rows: Any, text: str) -> Any:
        return rows.filter(actor=text)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """The newest events; of one resource, all that are kept."""

    list_display = (
        *(moments("at", _("at")), "happened", "pool", "resource", "fence", "holder", "host"),
        *(spans("seconds", _("lasted")), "actor", "why"),
    )
    fields = (
        *(moments("at", _("at")), "happened", "pool", "row", "fence", "holder", "host", "pid"),
        *(moments("began_at", _("since")), spans("seconds", _("lasted")), "actor", "why"),
    )
    list_filter = (PoolFilter, WhatFilter, PastFilter, EventHolderFilter, ActorFilter)
    search_fields = ("row",)
    search_help_text = _(
        "The number of a resource shows all of its events. Filters look at the newest 100,000 events."
    )

    @admin.display(description=_("what"))
    def happened(self, event: Event) -> str:
        """Show what happened."""
        return happened(event)

    @admin.display(description=_("resource"))
    def resource(self, event: Event) -> str:
        """Show which one it was, with a link to its page."""
        page = self._pages.get(event.pool)
        if page is None:
            return str(event.row)
        url = reverse(page, args=[quote(event.row)], current_app=self.admin_site.name)
        return format_html('<a href="{}">{}</a>', url, event.row)

    @admin.display(description=_("reason"))
    def why(self, event: Event) -> str:
        """Show the reason, in the reader's language if it is one of the program's."""
        return shown(event.reason)

    @property
    def _pages(self) -> dict[str, str]:
        shown = (model._meta for model in resource_models() if self.admin_site.is_registered(model))
        return {meta.label_lower: f"admin:{meta.app_label}_{meta.model_name}_change" for meta in shown}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find a resource's events by its key, the way the index has them; without it, only the newest ones."""
        if term := search_term.strip():
            pools = [model._meta.label_lower for model in resource_models()]
            return queryset.filter(pool__in=pools, row=term), False
        last = queryset.model._default_manager.aggregate(last=Max("pk"))["last"] or 0
        return queryset.filter(pk__gt=last - NEWEST), False


@admin.register(Sample)
class SampleAdmin(ReadOnlyAdmin):
    """How the pools stood, minute by minute."""

    list_display = fields = (
        *(moments("minute", _("minute")), "pool", "free", "leased", "away", "waiters"),
        *(spans("oldest_wait", _("longest wait")), "acquired", "lost"),
    )
    list_filter = (PoolFilter,)


@admin.register(Ticket)
class TicketAdmin(ReadOnlyAdmin):
    """Who waits; tickets of those who were served or died stay for a moment, or until somebody next waits."""

    list_display = (
        "pool",
        "holder",
        "is_alive",
        "count",
        "priority",
        moments("asked_at", _("asked at")),
        "selector",
    )
    list_filter = (PoolFilter,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the tickets together with how long they are still good."""
        rows: QuerySet[Any] = super().get_queryset(request).annotate(left=MicrosUntil("busy_before"))
        return rows

    @admin.display(description=_("still waits"), boolean=True)
    def is_alive(self, ticket: Any) -> bool:
        """Show whether its process is still there."""
        return bool(ticket.left > 0 and ticket.holder and ticket.is_waiting)


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """What is done now and then, and when it was done last."""

    list_display = (
        *("name", moments("done_at", _("done at")), spans("seconds", _("took")), "outcome"),
        *(moments("failed_at", _("failed at")), "holder", moments("busy_before", _("busy before"))),
    )
    ordering = ("name",)
    fields = (*list_display, "fence")

    @admin.display(description=_("result"))
    def outcome(self, job: Job) -> str:
        """Show what came of it, in the reader's language."""
        return shown(job.result)
