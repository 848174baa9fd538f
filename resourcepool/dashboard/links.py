"""The admin pages that numbers and alarms of the dashboard link to."""

from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from resourcepool.history.models import Event
from resourcepool.jobs import Job
from resourcepool.resources.state import State
from resourcepool.signals import EventKind
from resourcepool.status.alarm import Alarm, AlarmKind
from resourcepool.status.systems.registry import systems
from resourcepool.waiting.models import Ticket

# The list that an alarm of a pool links to: a model and the filters.
POOL_LISTS: dict[AlarmKind, tuple[Any, dict[str, str]]] = {
    **dict.fromkeys((AlarmKind.NOTHING_IN_SERVICE, AlarmKind.EXHAUSTED, AlarmKind.STARVED), (Ticket, {})),
    AlarmKind.LEAKED: (Event, {"what": EventKind.LEAKED.value, "past": "hour"}),
}


def admin_url(site: AdminSite, model: Any, page: str, *args: object, **filters: object) -> str:
    """Return the URL of an admin page of ``model`` with ``filters``; "" if this admin site has no such page."""
    if not site.is_registered(model):
        return ""
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    try:
        url = reverse(name, args=args, current_app=site.name)
    except NoReverseMatch:
        return ""
    return f"{url}?{urlencode(filters)}" if filters else url


class Links:
    """URLs of admin pages for the user of ``request``; "" for pages that do not exist or that they may not view."""

    def __init__(self, site: AdminSite, request: HttpRequest) -> None:
        self._site, self._request = site, request

    def changelist(self, model: Any, **filters: str) -> str:
        """Return the URL of the list of ``model`` with ``filters``."""
        return admin_url(self._site, model, "changelist", **filters) if self._can_view(model) else ""

    def change_page(self, model: Any, key: Any) -> str:
        """Return the URL of the page of the row ``key``."""
        return admin_url(self._site, model, "change", quote(key)) if self._can_view(model) else ""

    def for_alarm(self, alarm: Alarm) -> str:
        """Return the URL of the list that shows the subject of ``alarm``."""
        kind = alarm.kind
        if kind in (AlarmKind.JOB_FAILED, AlarmKind.CHECKER_BROKEN, AlarmKind.SWEEP_STALE):
            return self.changelist(Job)
        if kind in (AlarmKind.EXPIRED, AlarmKind.CHECK_STALE):
            return self.changelist(apps.get_model(alarm.pool), state=State.FREE.value)
        if kind in POOL_LISTS:
            model, filters = POOL_LISTS[kind]
            return self.changelist(model, pool=alarm.pool.lower(), **filters)
        about, colon, name = alarm.pool.partition(": ")
        for system in systems():
            if colon and system.subject == f"{about}: %s":
                model, filters = system.list_of_alarm(kind, name)
                return self.changelist(model, **filters)
        return ""

    def _can_view(self, model: Any) -> bool:
        site = self._site
        return site.is_registered(model) and site.get_model_admin(model).has_view_permission(self._request)
