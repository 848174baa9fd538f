"""The dashboard on the index of the admin site, for users who may view any part of it."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern

from resourcepool.admin.base import ReadOnlyAdmin
from resourcepool.dashboard.access import visible_models
from resourcepool.dashboard.panels import visible_in_panels
from resourcepool.dashboard.views import urls
from resourcepool.history.models import Dashboard


@admin.register(Dashboard)
class DashboardAdmin(ReadOnlyAdmin):
    """Shows the dashboard at the URL of the model's list."""

    def get_urls(self) -> list[URLPattern]:
        return urls(self.admin_site)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may view any pool or other system."""
        return bool(visible_models(self.admin_site, request) or visible_in_panels(self.admin_site, request))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)
