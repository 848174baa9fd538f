"""Where the dashboard's figures and problems lead: to the lists of the admin that show what they are about."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from resourcepool.history.models import Event
from resourcepool.jobs import Job
from resourcepool.queues.models import Move, Queue, Server, TaskType
from resourcepool.resources.state import State, Verdict
from resourcepool.signals import What
from resourcepool.status.alarm import ABOUT_QUEUES, Alarm, Kind
from resourcepool.waiting.models import Ticket


class Links:
    """The addresses of pages on this admin site; "" for those that are not there, or not for whoever asks."""

    def __init__(self, site: AdminSite, request: HttpRequest) -> None:
        self._site, self._request = site, request

    def resources(self, model: Any, **wanted: str) -> str:
        """Return the list of the resources of a pool."""
        return self._list(model, wanted)

    def resource(self, model: Any, key: str) -> str:
        """Return the page of one resource."""
        return self._page(model, "change", key)

    def state(self, model: Any, state: State) -> str:
        """Return the list of the resources in a state."""
        return self.resources(model, state=state.value)

    def bad(self, model: Any) -> str:
        """Return the list of the resources that the last check found bad."""
        return self.resources(model, verdict=Verdict.BAD.value)

    def line(self, label: str) -> str:
        """Return the list of those who wait for the pool with this label."""
        return self._list(Ticket, {"pool": label.lower()})

    def queues(self, task_type: str, **wanted: str) -> str:
        """Return the list of the queues of a task type."""
        return self._list(Queue, {"task_type": task_type, **wanted})

    def queue(self, key: str) -> str:
        """Return the page of one queue."""
        return self._page(Queue, "change", key)

    def server(self, key: int) -> str:
        """Return the page of one server."""
        return self._page(Server, "change", str(key))

    def servers(self, task_type: str) -> str:
        """Return the list of the servers of a task type."""
        return self._list(Server, {"task_type": task_type})

    def moves(self, task_type: str) -> str:
        """Return the list of what moved in a task type."""
        return self._list(Move, {"task_type": task_type})

    def task_type(self, key: int) -> str:
        """Return the page of one task type."""
        return self._page(TaskType, "change", str(key))

    def problem(self, alarm: Alarm) -> str:
        """Return the list that shows what an alarm is about."""
        if alarm.kind in (Kind.NOTHING_IN_SERVICE, Kind.EXHAUSTED, Kind.STARVED):
            return self.line(alarm.pool)
        if alarm.kind in (Kind.JOB_FAILED, Kind.CHECKER_BROKEN, Kind.SWEEP_STALE):
            return self._list(Job, {})
        if alarm.kind is Kind.LEAKED:
            return self._list(Event, {"pool": alarm.pool.lower(), "what": What.LEAKED.value, "past": "hour"})
        if alarm.pool.startswith(ABOUT_QUEUES):
            return self._problem_of_queues(alarm.kind, alarm.pool.removeprefix(ABOUT_QUEUES))
        model = apps.get_model(alarm.pool) if alarm.kind in (Kind.EXPIRED, Kind.CHECK_STALE) else None
        return self.state(model, State.FREE) if model else ""

    def _problem_of_queues(self, kind: Kind, task_type: str) -> str:
        if kind is Kind.UNOWNED:
            return self.queues(task_type, standing="ownerless")
        if kind is Kind.DRAIN_OVERDUE:
            return self.queues(task_type, standing="asked")
        # A drain that is stuck, or too few or too many of them: the servers.
        return self.moves(task_type) if kind is Kind.FLAPPING else self.servers(task_type)

    def _list(self, model: Any, wanted: Mapping[str, str]) -> str:
        address = self._page(model, "changelist")
        return f"{address}?{urlencode(wanted)}" if address and wanted else address

    def _page(self, model: Any, page: str, *args: str) -> str:
        if not self._site.is_registered(model):
            return ""
        if not self._site.get_model_admin(model).has_view_permission(self._request):
            return ""
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
        try:
            return reverse(name, args=args, current_app=self._site.name)
        except NoReverseMatch:
            return ""
