"""The activity of a row: its latest events on its page, earlier ones on further pages."""

from typing import Any

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern

from resourcepool.admin import describe
from resourcepool.admin.base import BaseAdmin
from resourcepool.events import localized
from resourcepool.history.models import Event
from resourcepool.status.times import format_datetime, precise_duration, time_zone_note
from resourcepool.translation import gettext

EVENTS = 50


class ActivityAdminMixin(BaseAdmin):
    """Shows the events of a row, newest first, to users who may view it."""

    change_form_template = "resourcepool/admin/change_form_with_activity.html"
    activity_template = "resourcepool/admin/activity.html"

    def get_urls(self) -> list[URLPattern]:
        return [
            self.url_pattern("<path:object_id>/activity/", self.activity_view, "activity"),
            *super().get_urls(),
        ]

    def events_of(self, row: Any, before: tuple[int, int] | None) -> Any:
        """Return the events of ``row``; see ``row_events``."""
        return row_events(row, before)

    def title_of(self, row: Any) -> str:
        """Return the name of ``row`` in headings."""
        return describe.title_of(row)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        return super().page_context(request, row) | self._activity(row, "")

    def activity_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the events of a row, ``EVENTS`` to a page."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        title = gettext("Activity of %s") % self.title_of(row)
        context = {"resource": row, "page": self.page_url("change", quote(row.pk))}
        context |= self._activity(row, request.GET.get("before", ""))
        return self.render_page(request, self.activity_template, title, **context)

    def _activity(self, row: Any, before: str) -> dict[str, Any]:
        fence, _dash, key = before.partition("-")
        is_valid = fence.isdecimal() and key.isdecimal() and len(before) < 40
        rows = self.events_of(row, (int(fence), int(key)) if is_valid else None)
        events: list[Any] = list(rows[: EVENTS + 1])
        for event in events:
            event.duration = "" if event.seconds is None else precise_duration(event.seconds)
            event.time, event.text = format_datetime(event.at), describe.event_text(event)
            event.since = "" if event.began_at is None else format_datetime(event.began_at)
            event.reason_text = localized(event.reason)
        last = events[EVENTS - 1] if len(events) > EVENTS else None
        older = f"{self.page_url('activity', quote(row.pk))}?before={last.fence}-{last.pk}" if last else ""
        return {"events": events[:EVENTS], "older": older, "zone": time_zone_note()}


def row_events(row: Any, before: tuple[int, int] | None) -> Any:
    """Return the events of ``row``, newest first.

    Args:
        before: fence and key of the last event already shown; None: from the newest on.
    """
    # Fence first: the order of the index.
    events = Event.objects.using(router.db_for_read(Event)).of(row).order_by("-fence", "-pk")
    if before:
        fence, key = before
        events = events.filter(Q(fence__lt=fence) | Q(fence=fence, pk__lt=key))
    return events
