"""The admin's index: the models of this app in sections, the dashboard first, instead of one long list."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest

from resourcepool.history.models import Dashboard, Event
from resourcepool.resources.models import AbstractResource
from resourcepool.status.registry import systems
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
    for section in SECTIONS:
        if inside := [*_inside(section, entries, section_of)]:
            yield {**app, "name": str(section), "models": inside}


def _inside(section: Any, entries: dict[Any, Any], section_of: dict[Any, Any]) -> Iterable[Any]:
    for model, entry in entries.items():
        default = RESOURCES if issubclass(model, AbstractResource) else INTERNALS
        if section_of.get(model, default) is section:
            yield entry
