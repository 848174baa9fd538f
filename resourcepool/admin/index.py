"""The admin's index: the models of this app in sections, the dashboard first; each system has a list and a page."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import URLPattern

from resourcepool.admin.base import ReadOnlyAdmin
from resourcepool.admin.containers import OperatedSystemAdmin, SystemAdmin
from resourcepool.dashboard.links import visible_models
from resourcepool.dashboard.panels import visible_in_panels
from resourcepool.dashboard.views import urls
from resourcepool.history.models import Dashboard, Event
from resourcepool.operations.operation import by_name
from resourcepool.resources.models import AbstractResource
from resourcepool.status.registry import named_systems, systems
from resourcepool.status.system import INTERNALS, RESOURCES, SECTIONS

FIRST = (Dashboard, Event)  # under the name of the app, in this order


def group_index(site: AdminSite) -> None:
    """Show the models of this app in sections on the index, and in the sidebar, of ``site``."""
    listed = site.get_app_list

    def get_app_list(request: HttpRequest, app_label: str | None = None) -> list[Any]:
        return [group for app in listed(request, app_label) for group in _groups(app)]

    site.get_app_list = get_app_list  # type: ignore[method-assign]


def _groups(app: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if app["app_label"] != Dashboard._meta.app_label:
        yield app
        return
    entries = {entry["model"]: entry for entry in app["models"]}
    first = [entries.pop(model) for model in FIRST if model in entries]
    if first:
        yield {**app, "models": first}
    section_of = {model: system.section for system in systems() for model in system.models}
    for model in entries:
        section_of.setdefault(model, RESOURCES if issubclass(model, AbstractResource) else INTERNALS)
    for section in SECTIONS:
        if inside := [entry for model, entry in entries.items() if section_of[model] is section]:
            yield {**app, "name": str(section), "models": inside}


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


def register_systems(site: AdminSite) -> None:
    """Register a page for each system whose model has none; its app can unregister it."""
    for system in named_systems().values():
        if not site.is_registered(system.reader.model):
            base = OperatedSystemAdmin if system.operations else SystemAdmin
            declared = {"system": system, "operations": by_name(*system.operations)}
            site.register(system.reader.model, type("SystemAdmin", (base,), declared))
