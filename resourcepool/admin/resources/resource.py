"""Resources in the admin: who has what, and until when. A running lease cannot be changed here, only taken away."""

from typing import Any, ClassVar

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from resourcepool.admin import words
from resourcepool.admin.generic import ModelForm
from resourcepool.admin.resources import columns
from resourcepool.admin.resources.columns import Columns
from resourcepool.admin.resources.deleting import Deleting
from resourcepool.admin.resources.exporting import export
from resourcepool.admin.resources.filters import HolderFilter, HostFilter, StateFilter, TagFilter, VerdictFilter
from resourcepool.admin.resources.operating import Operating
from resourcepool.dialect import DbNow
from resourcepool.events import shown
from resourcepool.history.leaks import told_of
from resourcepool.history.models import Event
from resourcepool.resources.state import state_of
from resourcepool.status.search import named

EVENTS = 50


class ResourceAdmin(Deleting, Columns, Operating):
    """The base for the admin of your own resource models.

    The page of one says what it is doing, what can be done, and what has happened.
    """

    change_form_template = "resourcepool/admin/resource.html"
    timeline_template = "resourcepool/admin/timeline.html"
    list_filter: ClassVar[tuple[Any, ...]] = (StateFilter, VerdictFilter, TagFilter, HolderFilter, HostFilter)
    sortable_by = ("expires_in", "fence")  # 100,000 texts take too long to sort
    search_fields: ClassVar[tuple[str, ...]] = ("holder", "tags")
    search_help_text = _(
        "A number, or an address as one pastes it, shows that resource; other words, what contains them."
    )
    readonly_fields: ClassVar[Any] = (
        *("holder", words.moments("busy_before", _("busy before")), "fence"),
        *(
            "in_service",
            columns.status,
            columns.reason,
            columns.until,
            "strikes",
            "verdict",
            words.moments("checked_at", _("checked at")),
            words.spans("latency", _("latency")),
        ),
    )
    actions: Any = (export,)  # besides the operations

    class Media:
        js = ("resourcepool/admin.js",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows together with the database's clock, by which their state is judged."""
        rows: QuerySet[Any] = super().get_queryset(request).annotate(db_now=DbNow())
        return rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find what the term names; if that is nothing, what contains its words."""
        condition = named(self.model, search_term.strip()) if search_term.strip() else None
        if condition is not None and (exactly := queryset.filter(condition)).exists():
            return exactly, False
        return super().get_search_results(request, queryset, search_term)

    def get_urls(self) -> list[URLPattern]:
        """Add the history."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_timeline"
        page = self.admin_site.admin_view(self.timeline_view)
        return [path("<path:object_id>/timeline/", page, name=name), *super().get_urls()]

    @method_decorator(sensitive_post_parameters())
    @sensitive_variables()
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Keep what was typed in, which may be a password, out of error reports."""
        return super().changeform_view(request, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Write only what was edited: the rest may have changed while the form was open."""
        if not change:
            super().save_model(request, obj, form, change)
        elif edited := self.edited(form):
            obj.save(update_fields=edited)

    def edited(self, form: ModelForm) -> list[str]:
        """Return the names of the model's fields that ``form`` changed."""
        return list(form.changed_data)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Add what the resource is doing and what happened to it."""
        resource = kwargs.get("obj")
        if resource is not None and hasattr(resource, "db_now"):
            self.note([resource])
            state = state_of(resource, resource.db_now)
            leaks = told_of(resource) if state in words.HELD else []
            context |= {
                "subtitle": words.titled(resource),
                "state": self.state(resource),
                "sentences": [
                    *words.sentences(resource, state, resource.db_now, resource.begun),
                    *map(words.of_the_leak, leaks),
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
        title = gettext("What happened to %s") % words.titled(resource)
        return self.page_beside(request, self.timeline_template, title, **about)

    def _timeline(self, resource: Any, before: str) -> dict[str, Any]:
        events: list[Any] = timeline(resource, before)
        for event in events:
            event.lasted = "" if event.seconds is None else words.lasted(event.seconds)
            event.moment, event.happened = words.moment(event.at), words.happened(event)
            event.since = "" if event.began_at is None else words.moment(event.began_at)
            event.why = shown(event.reason)
        last = events[EVENTS - 1] if len(events) > EVENTS else None
        older = f"{self.url_of('timeline', quote(resource.pk))}?before={last.fence}-{last.pk}" if last else ""
        return {"events": events[:EVENTS], "older": older, "zone": words.zone()}


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
