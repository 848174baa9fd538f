"""Where figures and problems lead: to the pages of the admin that show what they are about."""

from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from resourcepool.history.models import Event
from resourcepool.jobs import Job
from resourcepool.locks.channels.models import Subscription
from resourcepool.queues.models import Move, Queue, Server
from resourcepool.resources.state import State
from resourcepool.signals import What
from resourcepool.status.alarm import (
    ABOUT_CHANNELS,
    ABOUT_DISPENSERS,
    ABOUT_LOCKS,
    ABOUT_QUEUES,
    ABOUT_STREAMS,
    ABOUT_TIMERS,
    Alarm,
    Kind,
)
from resourcepool.status.locks.kinds import LockKind
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.waiting.models import Ticket

# The list that shows what an alarm is about: a model, and which of its rows.
OF_POOLS: dict[Kind, tuple[Any, dict[str, str]]] = {
    **dict.fromkeys((Kind.NOTHING_IN_SERVICE, Kind.EXHAUSTED, Kind.STARVED), (Ticket, {})),
    Kind.LEAKED: (Event, {"what": What.LEAKED.value, "past": "hour"}),
}
# Of other systems: also the parameter that names the stream, topic, ...; the kind of the alarm decides first.
OF_KINDS: dict[Kind, tuple[Any, str, dict[str, str]]] = {
    Kind.UNOWNED: (Queue, "task_type", {"standing": "ownerless"}),
    Kind.DRAIN_OVERDUE: (Queue, "task_type", {"standing": "asked"}),
    Kind.FLAPPING: (Move, "task_type", {}),
    Kind.BLOCKED: (Task, "stream", {"standing": Task.State.BLOCKED.value}),
    Kind.DEAD_TASKS: (Task, "stream", {"standing": Task.State.DEAD.value}),
    Kind.UNTAKEN_TIMERS: (Timer, "topic", {"standing": "handed"}),
    Kind.FAILED_TASKS: (DispenserTask, "dispenser", {"state": DispenserTask.State.FAILED.value}),
    Kind.DEAD_TIMERS: (Timer, "topic", {"standing": "dead"}),
}
OF_SYSTEMS: dict[str, tuple[Any, str, dict[str, str]]] = {
    ABOUT_QUEUES: (Server, "task_type", {}),
    ABOUT_STREAMS: (Task, "stream", {"standing": "unfinished"}),
    ABOUT_DISPENSERS: (DispenserTask, "dispenser", {"state": DispenserTask.State.READY.value}),
    ABOUT_TIMERS: (Timer, "topic", {"standing": "due"}),
    ABOUT_CHANNELS: (Subscription, "channel", {"standing": "durable"}),
}


def address(site: AdminSite, model: Any, page: str, *args: object, **wanted: object) -> str:
    """Return the URL of a page of ``model``, of the rows that are ``wanted``; "" if this admin site has none."""
    if not site.is_registered(model):
        return ""
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    try:
        found = reverse(name, args=args, current_app=site.name)
    except NoReverseMatch:
        return ""
    return f"{found}?{urlencode(wanted)}" if wanted else found


class Links:
    """The URLs of pages for the user of ``request``; "" for those that are not there, or that they may not view."""

    def __init__(self, site: AdminSite, request: HttpRequest) -> None:
        self._site, self._request = site, request

    def list(self, model: Any, **wanted: str) -> str:
        """Return the list of the rows that are ``wanted``."""
        return address(self._site, model, "changelist", **wanted) if self._may_view(model) else ""

    def page(self, model: Any, key: Any) -> str:
        """Return the page of the row with this key."""
        return address(self._site, model, "change", quote(key)) if self._may_view(model) else ""

    def problem(self, alarm: Alarm) -> str:
        """Return the list that shows what an alarm is about."""
        kind = alarm.kind
        if kind in (Kind.JOB_FAILED, Kind.CHECKER_BROKEN, Kind.SWEEP_STALE):
            return self.list(Job)
        if kind in (Kind.EXPIRED, Kind.CHECK_STALE):
            return self.list(apps.get_model(alarm.pool), state=State.FREE.value)
        if kind in OF_POOLS:
            model, wanted = OF_POOLS[kind]
            return self.list(model, pool=alarm.pool.lower(), **wanted)
        system, colon, name = alarm.pool.partition(": ")
        if not colon:
            return ""
        if (about := f"{system}: %s") == ABOUT_LOCKS:
            of_kind, _space, name = name.partition(" ")
            return self.list(LockKind(of_kind).model, standing="waited", q=name)
        model, column, wanted = OF_KINDS.get(kind) or OF_SYSTEMS[about]
        return self.list(model, **{column: name, **wanted})

    def _may_view(self, model: Any) -> bool:
        site = self._site
        return site.is_registered(model) and site.get_model_admin(model).has_view_permission(self._request)
