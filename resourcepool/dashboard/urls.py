"""Where the dashboard is: below the address that the admin site gives it."""

from functools import partial

from django.contrib.admin import AdminSite
from django.urls import URLPattern, path

from resourcepool.dashboard.views import answering, live, page


def urls(site: AdminSite) -> list[URLPattern]:
    """Return the dashboard's addresses on this admin site."""
    return [
        path(
            "", answering(site.admin_view(partial(page, site=site))), name="resourcepool_dashboard_changelist"
        ),
        path("live/", answering(partial(live, site=site)), name="resourcepool_dashboard_live"),
    ]
