"""The activity: what happened, one sentence for each event; of everything, or of one row."""

from collections.abc import Iterator
from functools import partial, reduce
from itertools import filterfalse
from operator import or_
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern

from resourcepool.admin.base import BaseAdmin, ReadOnlyAdmin
from resourcepool.admin.columns import (
    column,
    datetime_column,
    duration_column,
    lines,
    link_to_list,
    link_to_page,
    title_of,
)
from resourcepool.admin.csv_export import csv_response
from resourcepool.admin.filters import (
    PeriodFilter,
    WhatFilter,
    WhereFilter,
    WhoFilter,
    by_whom,
    is_dated,
    models_with_events,
    newest,
)
from resourcepool.admin.paging import MAX_ROWS
from resourcepool.dashboard.links import can_view
from resourcepool.events import localized
from resourcepool.history.models import Event
from resourcepool.status.event_text import add_sentences, thing
from resourcepool.status.times import format_datetime, local_time, time_zone_note
from resourcepool.taskqueue.abstract import work_models
from resourcepool.translation import gettext, gettext_lazy as _

LATEST = 5  # events on the page of the row
EXPORT = "export"  # parameter of the list that downloads it
EXPORTED = (
    *("at", "sentence", "what", "pool", "row", "fence", "holder", "host", "pid", "seconds", "actor", "reason"),
)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """The newest events; all kept events of a period, or of a row that the search names."""

    change_list_template = "resourcepool/admin/activity.html"
    list_display: Any = ("at", "sentence", "page")
    fields = (
        *("at", "sentence", "page", "what", "fence", "holder", "host", "pid"),
        *(datetime_column("began_at", _("since")), duration_column("seconds", _("lasted")), "actor", "reason"),
    )
    list_filter: ClassVar[Any] = (PeriodFilter, WhatFilter, WhereFilter, WhoFilter)
    search_fields: ClassVar[Any] = ("row",)
    search_help_text: ClassVar[Any] = _(
        "An operator, the start of a holder, or all events of one row: the id of a resource, the name of a stream,"
        " dispenser, topic or election, or a task or timer as name/key (oracle/req-42). Without a period, filters"
        " search the newest 100,000 events."
    )

    @admin.display(description=_("event"))
    def sentence(self, event: Event) -> str:
        return lines(event.sentence, event.details)  # type: ignore[attr-defined]

    @admin.display(description=_("page"))
    def page(self, event: Event) -> str:
        model = {model._meta.label_lower: model for model in models_with_events()}.get(event.pool)
        text = thing(event.pool, event.row)
        return link_to_page(self.admin_site, model, event.row, text) if model else text

    def load_column_values(self, rows: Any) -> None:
        add_sentences(list(rows))

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the columns; the moment of an event links to everything that happened around it."""
        shows_all = can_view(self.admin_site, request, Event)
        at = column("at", _("at"), partial(self._moment, shows_all=shows_all))
        return (at, *self.list_display[1:])

    def _moment(self, at: Any, *, shows_all: bool) -> str:
        around = local_time(at).replace(" ", "T")
        link = link_to_list(self.admin_site, Event, gettext("around this moment"), around=around)
        return lines(format_datetime(at), link if shows_all else "")

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the ordering; by time for a period, so that an index serves it."""
        return ("-at", "-pk") if is_dated(request.GET) else super().get_ordering(request)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Hide events of tasks and timers that the user may not view: they quote error messages."""
        events = super().get_queryset(request)
        hidden_models = filterfalse(partial(can_view, self.admin_site, request), work_models())
        hidden = [model._meta.label_lower for model in hidden_models]
        return events.exclude(pool__in=hidden) if hidden else events

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find the events of a row by its key, using the index; else those of an operator, a holder or a host."""
        term = search_term.strip()
        if term and (of_row := queryset.filter(_of_row(term))).exists():
            return of_row, False
        recent = queryset if is_dated(request.GET) else newest(queryset)
        return recent.filter(by_whom(term)) if term else recent, False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Show the list, or download it as CSV."""
        if EXPORT in request.GET:
            return self._download(request)
        query = request.GET.copy()
        query[EXPORT] = "csv"
        return super().changelist_view(
            request, {"export_url": f"?{query.urlencode()}", **(extra_context or {})}
        )

    def _download(self, request: HttpRequest) -> Any:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        query: Any = request.GET.copy()
        del query[EXPORT]
        request.GET = query
        try:
            shown = self.get_changelist_instance(request).queryset[:MAX_ROWS]
        except IncorrectLookupParameters:
            return HttpResponseRedirect(request.path)
        return csv_response(self.opts.model_name or "", EXPORTED, _records(list(shown)))


def _of_row(term: str) -> Q:
    """Return a condition on the events of a row by its key, or of a task or timer by "container/key"."""
    container, slash, key = term.partition("/")
    if slash and (work := [row for model in work_models() for row in model.objects.named(container, key)]):
        return reduce(or_, (Q(pool=row._meta.label_lower, row=str(row.pk)) for row in work))
    return Q(pool__in=[model._meta.label_lower for model in models_with_events()], row=term)


def _records(events: list[Any]) -> Iterator[dict[str, Any]]:
    add_sentences(events)
    for event in events:
        record = {name: getattr(event, name) for name in EXPORTED}
        yield record | {"at": local_time(event.at), "reason": localized(event.reason)}


class RowActivity(EventAdmin):
    """The activity of one row, for users who may view it.

    Args:
        page: the admin of the row's model.
    """

    list_filter: ClassVar[Any] = (PeriodFilter, WhatFilter, WhoFilter)
    list_display: Any = ("at", "sentence")
    list_display_links = None
    search_fields: ClassVar[Any] = ()
    search_help_text: ClassVar[Any] = ""

    def __init__(self, page: Any, row: Any) -> None:
        super().__init__(Event, page.admin_site)
        self.row_page, self.row = page, row

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True  # ``ActivityAdminMixin`` has checked that the user may view the row

    def get_queryset(self, request: HttpRequest) -> Any:
        return self.row_page.events_of(self.row)

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the ordering; without a period, that of the index of the row's events."""
        return ("-at", "-pk") if is_dated(request.GET) else self.row_page.events_of(self.row).query.order_by

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        return queryset, False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        title = gettext("Activity of %s") % self.row_page.title_of(self.row)
        return super().changelist_view(request, {"title": title, "row_page": self.row_page, "row": self.row})


class ActivityAdminMixin(BaseAdmin):
    """Shows the events of a row, newest first, to users who may view it."""

    def get_urls(self) -> list[URLPattern]:
        return [
            self.url_pattern("<path:object_id>/activity/", self.activity_view, "activity"),
            *super().get_urls(),
        ]

    def events_of(self, row: Any) -> Any:
        """Return the events of ``row``, newest first, in the order of an index."""
        return Event.objects.using(router.db_for_read(Event)).of(row).order_by("-fence", "-pk")

    def title_of(self, row: Any) -> str:
        return title_of(row)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        events = list(self.events_of(row)[:LATEST])
        add_sentences(events)
        for event in events:
            event.time = format_datetime(event.at)
        activity = {"events": events, "zone": time_zone_note()}
        return (
            super().page_context(request, row)
            | activity
            | {"all_url": self.page_url("activity", quote(row.pk))}
        )

    def activity_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        answer: HttpResponse = RowActivity(self, row).changelist_view(request)
        return answer
