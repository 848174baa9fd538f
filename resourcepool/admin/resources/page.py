"""The page of one resource: what it is doing, what can be done, and what has happened."""

from typing import Any

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from resourcepool.admin.resources.columns import Columns
from resourcepool.admin.resources.operating import Operating
from resourcepool.admin.words import HELD, happened, lasted, moment, of_the_leak, sentences, titled, zone
from resourcepool.events import shown
from resourcepool.history.leaks import told_of
from resourcepool.history.models import Event
from resourcepool.resources.state import state_of

EVENTS = 50


class Page(Columns, Operating):
    """The page of one resource, and the older part of its history."""

    change_form_template = "resourcepool/admin/resource.html"
    timeline_template = "resourcepool/admin/timeline.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the history."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_timeline"
        page = self.admin_site.admin_view(self.timeline_view)
        return [path("<path:object_id>/timeline/", page, name=name), *super().get_urls()]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Add what the resource is doing and what happened to it."""
        resource = kwargs.get("obj")
        if resource is not None and hasattr(resource, "db_now"):
            self.note([resource])
            state = state_of(resource, resource.db_now)
            leaks = told_of(resource) if state in HELD else []
            context |= {
                "subtitle": titled(resource),
                "state": self.state(resource),
                "sentences": [
                    *sentences(resource, state, resource.db_now, resource.begun),
                    *map(of_the_leak, leaks),
                ],
                "buttons": self.buttons(request, resource),
                **self._timeline(resource, ""),
            }
        return super().render_change_form(request, context, *args, **kwargs)

    def timeline_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what happened to one resource, EVENTS at a time."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        resource = self.get_object(request, unquote(object_id))
        if resource is None:
            raise Http404
        if not self.has_view_or_change_permission(request, resource):
            raise PermissionDenied
        about = self._timeline(resource, request.GET.get("before", ""))
        about |= {"resource": resource, "page": self.url_of("change", quote(resource.pk))}
        title = _("What happened to %s") % titled(resource)
        return self.page_beside(request, self.timeline_template, title, **about)

    def _timeline(self, resource: Any, before: str) -> dict[str, Any]:
        events: list[Any] = timeline(resource, before)
        for event in events:
            event.lasted = "" if event.seconds is None else lasted(event.seconds)
            event.moment, event.happened = moment(event.at), happened(event)
            event.since = "" if event.began_at is None else moment(event.began_at)
            event.why = shown(event.reason)
        last = events[EVENTS - 1] if len(events) > EVENTS else None
        older = f"{self.url_of('timeline', quote(resource.pk))}?before={last.fence}-{last.pk}" if last else ""
        return {"events": events[:EVENTS], "older": older, "zone": zone()}


def timeline(resource: Any, before: str) -> list[Event]:
    """Return what happened to ``resource``, the latest first: EVENTS, and one if there are more.

    Args:
        before: "fence-number" of the event where the page before ended; "" for the first page.
    """
    # By fence first: that is the order in which the index has them.
    events = Event.objects.using(router.db_for_read(Event)).of(resource).order_by("-fence", "-pk")
    fence, _dash, number = before.partition("-")
    if fence.isdecimal() and number.isdecimal() and len(before) < 40:
        events = events.filter(Q(fence__lt=int(fence)) | Q(fence=int(fence), pk__lt=int(number)))
    return list(events[: EVENTS + 1])
