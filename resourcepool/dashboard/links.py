"""The admin pages that the dashboard links to, and the operations that it offers, as far as the user may."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.contrib.auth import get_permission_codename
from django.db.models import IntegerField
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from resourcepool.history.models import Event
from resourcepool.jobs import CHECK, Job
from resourcepool.locks.models import Barrier
from resourcepool.resources.registry import resource_models
from resourcepool.resources.state import State
from resourcepool.signals import EventKind
from resourcepool.status.alarm import Alarm, AlarmKind
from resourcepool.status.internals import JobStatus
from resourcepool.status.registry import systems
from resourcepool.status.system import System
from resourcepool.translation import gettext as _

JOB_ALARMS = (AlarmKind.JOB_FAILED, AlarmKind.CHECKER_BROKEN, AlarmKind.SWEEP_STALE)
FREE, OUT = ({"state": state.value} for state in (State.FREE, State.OUT))
LEASED = {"state": State.LEASED.value}
# The filters of the list of resources that an alarm of a pool links to, and the operations that most likely end it.
POOL_ALARMS: dict[AlarmKind, tuple[dict[str, str], tuple[str, ...]]] = {
    AlarmKind.NOTHING_IN_SERVICE: (OUT, ("return_to_service",)),
    AlarmKind.EXHAUSTED: (LEASED, ()),
    AlarmKind.STARVED: (FREE, ()),
    AlarmKind.EXPIRED: (FREE, ("check",)),
    AlarmKind.CHECK_STALE: (FREE, ("check",)),
}


class Button(NamedTuple):
    """An operation that the user may run.

    Attributes:
        url: of its form, or the address to post to.
        form: HTML id of the form that posts it; "": the button is a link to ``url``, which asks first.
    """

    operation: Any
    url: str
    form: str


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
        self._rows: dict[tuple[Any, str], Any] = {}
        # Where an operation returns to: this page, or the one of which this is the live part.
        is_live = request.path == self.page("live")
        self._back = self.page("changelist") if is_live else request.get_full_path()

    def page(self, name: str, **query: str) -> str:
        """Return the URL of a page of the dashboard: "changelist", "search" .."""
        url = reverse(f"admin:resourcepool_dashboard_{name}", current_app=self._site.name)
        return f"{url}?{urlencode(query)}" if query else url

    def changelist(self, model: Any, **filters: str) -> str:
        """Return the URL of the list of ``model`` with ``filters``."""
        return admin_url(self._site, model, "changelist", **filters) if self.can_view(model) else ""

    def change_page(self, model: Any, key: Any) -> str:
        return admin_url(self._site, model, "change", quote(key)) if self.can_view(model) else ""

    def for_alarm(self, alarm: Alarm) -> str:
        """Return the URL of the row that ``alarm`` is about, or else of the list that shows its subject."""
        if alarm.key:
            return self.change_page(apps.get_model(alarm.model), alarm.key)
        model, filters = _list_of(alarm)
        return self.changelist(model, **filters) if model else ""

    def buttons_for_alarm(self, alarm: Alarm) -> list[Button]:
        """Return the operations that most likely end ``alarm``, on its row or on all rows of its list."""
        names = _operations_of(alarm)
        if alarm.key:
            return self.on_row(apps.get_model(alarm.model), alarm.key, names)
        model, filters = _list_of(alarm)
        is_list = model is not None and isinstance(model._meta.pk, IntegerField)  # its form has a key: 1
        return self._on_list(model, filters, names) if is_list else []

    def return_to_service(self, model: Any) -> list[Button]:
        """Return the operation that returns resources to service, on the list of those out of service."""
        return self._on_list(model, *POOL_ALARMS[AlarmKind.NOTHING_IN_SERVICE])

    def load(self, rows: Iterable[tuple[Any, Any]]) -> None:
        """Read these rows (model, key) as their pages read them, in one query per model, for ``on_row``."""
        keys: dict[Any, set[Any]] = defaultdict(set)
        for model, key in rows:
            keys[model].add(_row_key(model, key))
        for model, some in keys.items():
            if self.can_view(model):
                found = self._site.get_model_admin(model).get_queryset(self._request).filter(pk__in=some)
                self._rows |= {(model, str(row.pk)): row for row in found}

    def on_row(self, model: Any, key: Any, names: Iterable[str]) -> list[Button]:
        """Return those of the operations with these names that the user may run and that would change the row ``key``.

        The row must have been read by ``load``; none changes a row that no longer exists.
        """
        row = self._rows.get((model, str(_row_key(model, key))))
        return [] if row is None else self._buttons(row, names)

    def _buttons(self, row: Any, names: Iterable[str]) -> list[Button]:
        buttons, model, key = [], type(row), row.pk
        page: Any = self._site.get_model_admin(model)
        for operation in self._allowed(model, names):
            if not page.can_offer(operation, row):
                continue
            url = admin_url(self._site, model, "operate", quote(key), operation.name)
            back = urlencode({"next": self._back})
            buttons.append(Button(operation, f"{url}?{back}", "rp-run" if operation.is_harmless else ""))
        return buttons

    def of_row(self, row: Any) -> list[Button]:
        """Return all operations that the page of ``row``, which comes from ``get_object``, offers the user now."""
        page: Any = self._site.get_model_admin(type(row))
        return self._buttons(row, getattr(page, "operations", {}))

    def get_object(self, model: Any, key: str) -> Any:
        """Return the row, as its page reads it; None: the user may not see it, or it does not exist."""
        if not self.can_view(model):
            return None
        return self._site.get_model_admin(model).get_object(self._request, _row_key(model, key))

    def _on_list(self, model: Any, filters: dict[str, str], names: Iterable[str]) -> list[Button]:
        url = self.changelist(model, **filters)
        return (
            [Button(operation, url, "rp-run-all") for operation in self._allowed(model, names)] if url else []
        )

    def _allowed(self, model: Any, names: Iterable[str]) -> Iterator[Any]:
        if not self.can_view(model):
            return
        page: Any = self._site.get_model_admin(model)
        operations = getattr(page, "operations", {})
        for operation in (operations[name] for name in names if name in operations):
            if operation.is_for(model) and page.can_run(self._request, operation):
                yield operation

    def can_view(self, model: Any) -> bool:
        """Return whether this admin site has pages of ``model`` that the user may view."""
        site = self._site
        return site.is_registered(model) and site.get_model_admin(model).has_view_permission(self._request)


def _row_key(model: Any, key: Any) -> Any:
    """Return the primary key of the row that the page ``key`` shows; the page of a barrier has its name."""
    return Barrier.own_key(key) if model is Barrier else key


def system_of(alarm: Alarm) -> System | None:
    """Return the system that raises ``alarm``; None: a pool or a job."""
    about, colon, _name = alarm.pool.partition(": ")
    return next((one for one in systems() if colon and one.subject == f"{about}: %s"), None)


def _list_of(alarm: Alarm) -> tuple[Any, dict[str, str]]:
    """Return the model and the filters of the list that shows the subject of ``alarm``; None: there is none."""
    if alarm.kind in JOB_ALARMS:
        return Job, {}
    if alarm.kind in POOL_ALARMS:
        return apps.get_model(alarm.pool), POOL_ALARMS[alarm.kind][0]
    if alarm.kind is AlarmKind.LEAKED:
        return Event, {"pool": alarm.pool.lower(), "what": EventKind.LEAKED.value, "past": "hour"}
    system = system_of(alarm)
    return system.list_of_alarm(alarm.kind, alarm.pool.partition(": ")[2]) if system else (None, {})


def _operations_of(alarm: Alarm) -> tuple[str, ...]:
    if system := system_of(alarm):
        return tuple(system.alarm_operations.get(alarm.kind, ()))
    return POOL_ALARMS[alarm.kind][1] if alarm.kind in POOL_ALARMS else ()


def visible_models(site: AdminSite, request: HttpRequest) -> list[Any]:
    """Return the resource models whose rows the user of ``request`` may view."""
    return [model for model in resource_models() if can_view(site, request, model)]


def can_view(site: AdminSite, request: HttpRequest, model: Any) -> bool:
    """Return whether the user of ``request`` may view rows of ``model`` on this admin site."""
    if site.is_registered(model):
        return site.get_model_admin(model).has_view_permission(request)
    opts = model._meta
    names = (f"{opts.app_label}.{get_permission_codename(action, opts)}" for action in ("view", "change"))
    return any(request.user.has_perm(name) for name in names)


def visible_jobs(jobs: Mapping[str, JobStatus], models: Sequence[Any]) -> dict[str, JobStatus]:
    """Return ``jobs`` for a user who may view only ``models``, without anything that names another pool."""
    labels = {model._meta.label for model in models}
    if labels.issuperset(model._meta.label for model in resource_models()):
        return dict(jobs)
    return {
        name: _redacted(job, labels)
        for name, job in jobs.items()
        if not name.startswith(CHECK) or name.removeprefix(CHECK) in labels
    }


def _redacted(job: JobStatus, labels: set[str]) -> JobStatus:
    """Hide the text of an error, which may name any pool, unless the job checks a visible pool."""
    if job.failed is None or job.name.removeprefix(CHECK) in labels:
        return job
    return dataclasses.replace(job, result=_("see the application log"))
