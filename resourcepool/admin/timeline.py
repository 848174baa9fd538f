"""What happened to one row, below its page and, further back, on a page of its own."""

from typing import Any

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext

from resourcepool.admin import words
from resourcepool.admin.generic import Admin
from resourcepool.events import shown
from resourcepool.history.models import Event

EVENTS = 50


class Timelined(Admin):
    """For those who may see a row: its history, the latest first."""

    change_form_template = "resourcepool/admin/timelined.html"
    timeline_template = "resourcepool/admin/timeline.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the history."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_timeline"
        page = self.admin_site.admin_view(self.timeline_view)
        return [path("<path:object_id>/timeline/", page, name=name), *super().get_urls()]

    def happened_to(self, row: Any, before: str) -> list[Event]:
        """Return what happened to ``row``; see ``timeline``."""
        return timeline(row, before)

    def titled(self, row: Any) -> str:
        """Return what a page calls ``row``."""
        return words.titled(row)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Add what happened."""
        if (row := kwargs.get("obj")) is not None:
            context |= self._timeline(row, "")
        return super().render_change_form(request, context, *args, **kwargs)

    def timeline_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what happened to one row, EVENTS at a time."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        about = self._timeline(row, request.GET.get("before", ""))
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("What happened to %s") % self.titled(row),
            "opts": self.opts,
            "media": self.media,
            "resource": row,
            "page": self._address("change", row),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.timeline_template, context | about)

    def _address(self, page: str, row: Any) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=[quote(row.pk)], current_app=self.admin_site.name)

    def _timeline(self, row: Any, before: str) -> dict[str, Any]:
        events: list[Any] = self.happened_to(row, before)
        for event in events:
            event.lasted = "" if event.seconds is None else words.lasted(event.seconds)
            event.moment, event.happened = words.moment(event.at), words.happened(event)
            event.since = "" if event.began_at is None else words.moment(event.began_at)
            event.why = shown(event.reason)
        last = events[EVENTS - 1] if len(events) > EVENTS else None
        older = f"{self._address('timeline', row)}?before={last.fence}-{last.pk}" if last else ""
        return {"events": events[:EVENTS], "older": older, "zone": words.zone()}


def timeline(row: Any, before: str) -> list[Event]:
    """Return what happened to ``row``, the latest first: EVENTS, and one if there are more.

    Args:
        before: "fence-number" of the event where the page before ended; "" for the first page.
    """
    # By fence first: that is the order in which the index has them.
    events = Event.objects.using(router.db_for_read(Event)).of(row).order_by("-fence", "-pk")
    fence, _dash, number = before.partition("-")
    if fence.isdecimal() and number.isdecimal() and len(before) < 40:
        events = events.filter(Q(fence__lt=int(fence)) | Q(fence=int(fence), pk__lt=int(number)))
    return list(events[: EVENTS + 1])
