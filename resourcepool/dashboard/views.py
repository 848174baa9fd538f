"""The views of the dashboard: the page, and its live part, which the browser fetches every few seconds."""

import logging
from collections.abc import Callable
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

from resourcepool.dashboard.access import visible_models
from resourcepool.dashboard.cards import overview
from resourcepool.dashboard.charts import chart_range, charts
from resourcepool.dashboard.links import Links
from resourcepool.dashboard.panels import visible_in_panels
from resourcepool.dashboard.search import search
from resourcepool.dashboard.waiting import waiting
from resourcepool.exceptions import ResourcePoolError
from resourcepool.status import alarms
from resourcepool.status.alarms import HOUR
from resourcepool.status.resources.activity import ChartRange
from resourcepool.status.times import database_now
from resourcepool.translation import gettext as _

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
