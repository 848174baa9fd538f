"""The views of the dashboard: the page, its live part, which the browser fetches every few seconds, search, waiters."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from resourcepool.dashboard.cards import overview
from resourcepool.dashboard.charts import chart_range, charts
from resourcepool.dashboard.links import LEASED, Button, Links, can_view, visible_models
from resourcepool.dashboard.panels import visible_in_panels
from resourcepool.exceptions import ResourcePoolError
from resourcepool.history.models import Event
from resourcepool.queues.models import Queue, Server
from resourcepool.status import alarms
from resourcepool.status.alarms import HOUR
from resourcepool.status.finding import MAX_TEXT, Found, find_everything
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.registry import systems
from resourcepool.status.resources.activity import ChartRange
from resourcepool.status.resources.waiting import Lines, Waiting
from resourcepool.status.times import database_now
from resourcepool.taskqueue.abstract import work_models
from resourcepool.translation import gettext as _

ENDING_WAITS = ("revoke", "revoke-holder", "remove")  # operations, as far as its kind of lock has them


@require_safe
def waiting(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Show a page of the waiters that the user may view; ``of`` in the URL: only this pool or lock."""
    request.current_app = site.name
    models = visible_models(site, request)
    kinds = [kind for kind in LockKind if can_view(site, request, kind.model)]
    if not models and not kinds:
        raise PermissionDenied
    of, number = request.GET.get("of", ""), _number(request.GET.get("page", ""))
    page, links = Lines(models, kinds, of).page(number), Links(site, request)
    links.load((one.model, one.key) for one in page.waiters if one.key)
    query = {"of": of} if of else {}
    context = {
        **site.each_context(request),
        "title": _("Who waits, and why"),
        "of": of,
        "page": page,
        "rows": [(one, *_links(one, links)) for one in page.waiters],
        "all": links.page("waiting") if of else "",
        "earlier": links.page("waiting", **query, page=str(number - 1)) if number > 1 else "",
        "later": links.page("waiting", **query, page=str(number + 1)) if page.has_more else "",
    }
    return render(request, "resourcepool/dashboard/waiting.html", context)


def _number(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 6 else 1


def _links(one: Waiting, links: Links) -> tuple[str, Sequence[Button]]:
    """Return the URL of what holds it up, and the operations on it."""
    if not one.key:
        return links.changelist(one.model, **LEASED), ()
    return links.change_page(one.model, one.key), links.on_row(one.model, one.key, ENDING_WAITS)


# The operations on each thing that a holder holds, and on a task that blocks its stream.
ON_RELATED = ("revoke", "quarantine", "retry", "discard")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, with links and buttons; ``url``: of its page, "": none."""

    found: Found
    url: str
    buttons: Sequence[Button]
    related: Sequence[tuple[str, str, Sequence[Button]]]


@require_safe
def search(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Show what the text ``q`` names, among all that the user may view."""
    request.current_app = site.name
    text, links = request.GET.get("q", "")[:MAX_TEXT], Links(site, request)
    found = list(find_everything(text, visible_models(site, request), _visible(site, request)))
    links.load((model, key) for one in found for model, key, _text in one.related)
    answers = [_answer(one, links) for one in found]
    context = {**site.each_context(request), "title": _("Search"), "text": text, "answers": answers}
    return render(request, "resourcepool/dashboard/search.html", context)


def _visible(site: AdminSite, request: HttpRequest) -> set[Any]:
    """Return the models besides resources that the user may view."""
    models = {model for system in systems() for model in (*system.viewed, *system.details)}
    models |= {Queue, Server, Event, *work_models(), *(kind.model for kind in LockKind)}
    return {model for model in models if can_view(site, request, model)}


def _answer(found: Found, links: Links) -> Answer:
    related = [
        (text, links.change_page(model, key), links.on_row(model, key, ON_RELATED))
        for model, key, text in found.related
    ]
    if found.model is None or found.key is None:
        url = links.changelist(found.model, **found.filters) if found.model else ""
        return Answer(found, url, (), related)
    row = links.get_object(found.model, str(found.key))
    buttons = links.of_row(row) if row is not None else ()
    return Answer(found, links.change_page(found.model, found.key), buttons, related)


REFRESH_EVERY = 5  # seconds

View = Callable[..., HttpResponse]

logger = logging.getLogger(__name__)


def urls(site: AdminSite) -> list[URLPattern]:
    """Return the URL patterns of the dashboard on ``site``."""
    page_view = handle_outage(site.admin_view(partial(page, site=site)))
    live_view = handle_outage(partial(live, site=site))
    snooze_view = handle_outage(site.admin_view(partial(snooze, site=site)))
    return [
        path("", page_view, name="resourcepool_dashboard_changelist"),
        path("live/", live_view, name="resourcepool_dashboard_live"),
        path("snooze/", snooze_view, name="resourcepool_dashboard_snooze"),
        *(
            path(
                f"{name}/",
                handle_outage(site.admin_view(partial(view, site=site))),
                name=f"resourcepool_dashboard_{name}",
            )
            for name, view in (("search", search), ("waiting", waiting), ("charts", charts))
        ),
    ]


def handle_outage(view: View) -> View:
    """Make ``view`` answer 503 with one sentence, instead of an error page, when the database does not answer."""

    @wraps(view)
    def wrapped(*args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(*args, **kwargs)
        except (DatabaseError, InterfaceError, ResourcePoolError) as error:
            logger.warning("dashboard unavailable: %s", error)
            text = _("The database is not responding correctly; see the application log.")
            return HttpResponse(
                text, status=503, content_type="text/plain", headers={"Retry-After": str(REFRESH_EVERY)}
            )

    return wrapped


@require_safe
def page(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Show the whole page, which works without JavaScript; the admin site has checked that the user is staff."""
    context = {
        **site.each_context(request),
        **_overview(request, site),
        "title": _("Dashboard"),
        "spans": list(ChartRange),  # a list, because a template would call the class
        "every": REFRESH_EVERY,
        "is_nav_sidebar_enabled": False,
    }
    return render(request, "resourcepool/dashboard/page.html", context)


@never_cache
@require_safe
def live(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Return the live part; after a logout the answer is 403, not the login page."""
    if not site.has_permission(request):
        return HttpResponse(_("You are logged out."), status=403, content_type="text/plain")
    return render(request, "resourcepool/dashboard/live.html", _overview(request, site))


@require_POST
def snooze(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Snooze an alarm for an hour, or end its snooze; for users who may run any operation."""
    if not may_snooze(request):
        raise PermissionDenied
    hours = 0.0 if "end" in request.POST else HOUR
    alarms.snooze(request.POST.get("end") or request.POST.get("alarm", ""), request.user.get_username(), hours)
    return HttpResponseRedirect(Links(site, request).page("changelist"))


def may_snooze(request: HttpRequest) -> bool:
    """Return whether the user may run an operation anywhere: who only reads hides nothing from others."""
    permissions: Any = request.user.get_all_permissions()
    return any(name.partition(".")[2].startswith("operate_") for name in permissions)


def _overview(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    request.current_app = site.name
    models = visible_models(site, request)
    visible = visible_in_panels(site, request)
    if not models and not visible:
        raise PermissionDenied
    shown = overview(models, chart_range(request), Links(site, request), visible)
    return {"shown": shown, "now": database_now(), "may_snooze": may_snooze(request)}
