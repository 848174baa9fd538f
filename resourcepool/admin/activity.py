"""The activity of a row: its latest events on its page, all of them on a page of their own."""

from typing import Any

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import router
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern

from resourcepool.admin import describe
from resourcepool.admin.base import BaseAdmin
from resourcepool.admin.events import RowActivity
from resourcepool.history.models import Event
from resourcepool.status.event_text import add_sentences
from resourcepool.status.times import format_datetime, time_zone_note

LATEST = 5  # events on the page of the row


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
        """Return the name of ``row`` in headings."""
        return describe.title_of(row)

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
        """Show all events of a row."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        answer: HttpResponse = RowActivity(self, row).changelist_view(request)
        return answer
