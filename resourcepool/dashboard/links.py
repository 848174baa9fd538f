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
from resourcepool.signals import EventKind
from resourcepool.status.alarm import (
    ABOUT_CHANNELS,
    ABOUT_DISPENSERS,
    ABOUT_LOCKS,
    ABOUT_QUEUES,
    ABOUT_STREAMS,
    ABOUT_TIMERS,
    Alarm,
    AlarmKind,
)
from resourcepool.status.locks.kinds import LockKind
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.waiting.models import Ticket

# The list that shows what an alarm is about: a model, and which of its rows.
OF_POOLS: dict[AlarmKind, tuple[Any, dict[str, str]]] = {
    **dict.fromkeys((AlarmKind.NOTHING_IN_SERVICE, AlarmKind.EXHAUSTED, AlarmKind.STARVED), (Ticket, {})),
    AlarmKind.LEAKED: (Event, {"what": EventKind.LEAKED.value, "past": "hour"}),
}
# Of other systems: also the parameter that names the stream, topic, ...; the kind of the alarm decides first.
OF_KINDS: dict[AlarmKind, tuple[Any, str, dict[str, str]]] = {
    AlarmKind.UNOWNED: (Queue, "queue_group", {"status": "unowned"}),
    AlarmKind.DRAIN_OVERDUE: (Queue, "queue_group", {"status": "asked"}),
    AlarmKind.FLAPPING: (Move, "queue_group", {}),
    AlarmKind.BLOCKED: (Task, "stream", {"status": Task.State.BLOCKED.value}),
    AlarmKind.DEAD_TASKS: (Task, "stream", {"status": Task.State.DEAD.value}),
    AlarmKind.UNCLAIMED_TIMERS: (Timer, "topic", {"status": "handed"}),
    AlarmKind.FAILED_TASKS: (DispenserTask, "dispenser", {"state": DispenserTask.State.FAILED.value}),
    AlarmKind.DEAD_TIMERS: (Timer, "topic", {"status": "dead"}),
}
OF_SYSTEMS: dict[str, tuple[Any, str, dict[str, str]]] = {
    ABOUT_QUEUES: (Server, "queue_group", {}),
    ABOUT_STREAMS: (Task, "stream", {"status": "unfinished"}),
    ABOUT_DISPENSERS: (DispenserTask, "dispenser", {"state": DispenserTask.State.READY.value}),
    ABOUT_TIMERS: (Timer, "topic", {"status": "due"}),
    ABOUT_CHANNELS: (Subscription, "channel", {"status": "durable"}),
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
        return address(self._site, model, "changelist", **wanted) if self._can_view(model) else ""

    def page(self, model: Any, key: Any) -> str:
        """Return the page of the row with this key."""
        return address(self._site, model, "change", quote(key)) if self._can_view(model) else ""

    def problem(self, alarm: Alarm) -> str:
        """Return the list that shows what an alarm is about."""
        kind = alarm.kind
        if kind in (AlarmKind.JOB_FAILED, AlarmKind.CHECKER_BROKEN, AlarmKind.SWEEP_STALE):
            return self.list(Job)
        if kind in (AlarmKind.EXPIRED, AlarmKind.CHECK_STALE):
            return self.list(apps.get_model(alarm.pool), state=State.FREE.value)
        if kind in OF_POOLS:
            model, wanted = OF_POOLS[kind]
            return self.list(model, pool=alarm.pool.lower(), **wanted)
        system, colon, name = alarm.pool.partition(": ")
        if not colon:
            return ""
        if (about := f"{system}: %s") == ABOUT_LOCKS:
            of_kind, _space, name = name.partition(" ")
            return self.list(LockKind(of_kind).model, status="waited", q=name)
        model, column, wanted = OF_KINDS.get(kind) or OF_SYSTEMS[about]
        return self.list(model, **{column: name, **wanted})

    def _can_view(self, model: Any) -> bool:
        site = self._site
        return site.is_registered(model) and site.get_model_admin(model).has_view_permission(self._request)
