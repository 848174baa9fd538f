"""What happened to one row: below its page and, further back, on a page of its own."""

from typing import Any

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.translation import gettext

from resourcepool.admin import describe
from resourcepool.admin.base import BaseAdmin
from resourcepool.admin.columns import lasted, moment, zone
from resourcepool.events import localized
from resourcepool.history.models import Event

EVENTS = 50


class ActivityAdminMixin(BaseAdmin):
    """For those who may see a row: its history, the latest first."""

    change_form_template = "resourcepool/admin/change_form_with_activity.html"
    timeline_template = "resourcepool/admin/activity.html"

    def get_urls(self) -> list[URLPattern]:
        return [
            self.url_pattern("<path:object_id>/timeline/", self.timeline_view, "timeline"),
            *super().get_urls(),
        ]

    def events_of(self, row: Any, before: tuple[int, int] | None) -> Any:
        return timeline(row, before)

    def title_of(self, row: Any) -> str:
        return describe.title_of(row)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        return super().page_context(request, row) | self._timeline(row, "")

    def timeline_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what happened to one row, EVENTS at a time."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        title = gettext("What happened to %s") % self.title_of(row)
        about = {"resource": row, "page": self.page_url("change", quote(row.pk))}
        about |= self._timeline(row, request.GET.get("before", ""))
        return self.render_page(request, self.timeline_template, title, **about)

    def _timeline(self, row: Any, before: str) -> dict[str, Any]:
        fence, _dash, number = before.partition("-")
        is_given = fence.isdecimal() and number.isdecimal() and len(before) < 40
        found = self.events_of(row, (int(fence), int(number)) if is_given else None)
        events: list[Any] = list(found[: EVENTS + 1])
        for event in events:
            event.lasted = "" if event.seconds is None else lasted(event.seconds)
            event.moment, event.happened = moment(event.at), describe.happened(event)
            event.since = "" if event.began_at is None else moment(event.began_at)
            event.why = localized(event.reason)
        last = events[EVENTS - 1] if len(events) > EVENTS else None
        older = f"{self.page_url('timeline', quote(row.pk))}?before={last.fence}-{last.pk}" if last else ""
        return {"events": events[:EVENTS], "older": older, "zone": zone()}


def timeline(row: Any, before: tuple[int, int] | None) -> Any:
    """Return what happened to ``row``, the latest first; ``before``: fence and number of the last event shown."""
    # By fence first: that is the order in which the index has them.
    events = Event.objects.using(router.db_for_read(Event)).of(row).order_by("-fence", "-pk")
    if before:
        fence, number = before
        events = events.filter(Q(fence__lt=fence) | Q(fence=fence, pk__lt=number))
    return events
