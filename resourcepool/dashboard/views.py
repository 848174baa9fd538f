"""The dashboard's two answers: the page, and the part of it that is asked for again every few seconds."""

import logging
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from resourcepool.dashboard.access import visible_models, visible_systems
from resourcepool.dashboard.cards import overview
from resourcepool.dashboard.links import Links
from resourcepool.exceptions import ResourcePoolError
from resourcepool.status.activity import ChartRange

EVERY = 5  # seconds between two looks

View = Callable[..., HttpResponse]

logger = logging.getLogger(__name__)


def urls(site: AdminSite) -> list[URLPattern]:
    """Return the dashboard's addresses on this admin site, below the one that the site gives it."""
    whole, part = answering(site.admin_view(partial(page, site=site))), answering(partial(live, site=site))
    return [
        path("", whole, name="resourcepool_dashboard_changelist"),
        path("live/", part, name="resourcepool_dashboard_live"),
    ]


def answering(view: View) -> View:
    """Answer 503 with one sentence instead of an error page when the database does not answer."""

    @wraps(view)
    def answer(*args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(*args, **kwargs)
        except (DatabaseError, InterfaceError, ResourcePoolError) as error:
            logger.warning("the dashboard cannot be shown: %s", error)
            text = _("The database does not answer as it should; the server's log says more.")
            return HttpResponse(
                text, status=503, content_type="text/plain", headers={"Retry-After": str(EVERY)}
            )

    return answer


@require_safe
def page(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Show the whole page; it needs no script. The admin site has checked that the user is staff."""
    context = {
        **site.each_context(request),
        **_overview(request, site),
        "title": _("Dashboard"),
        "spans": list(ChartRange),  # a template would call the class
        "every": EVERY,
        "is_nav_sidebar_enabled": False,
    }
    return render(request, "resourcepool/dashboard/page.html", context)


@never_cache
@require_safe
def live(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Return the part that changes; a user who is logged out gets 403, not the login page."""
    if not site.has_permission(request):
        return HttpResponse(_("You are logged out."), status=403, content_type="text/plain")
    return render(request, "resourcepool/dashboard/live.html", _overview(request, site))


def _overview(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    request.current_app = site.name
    models = visible_models(site, request)
    systems = visible_systems(site, request)
    if not models and not systems:
        raise PermissionDenied
    chosen = request.GET.get("span", "")
    span = ChartRange(chosen) if chosen in list(ChartRange) else ChartRange.HOUR
    shown = overview(models, span, Links(site, request), systems)
    return {"shown": shown, "now": timezone.now()}
