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

QUEUE_PROBLEMS: dict[Kind, tuple[Any, dict[str, str]]] = {
    Kind.UNOWNED: (Queue, {"standing": "ownerless"}),
    Kind.DRAIN_OVERDUE: (Queue, {"standing": "asked"}),
    Kind.FLAPPING: (Move, {}),
}  # the others are about servers


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
        if kind in (Kind.NOTHING_IN_SERVICE, Kind.EXHAUSTED, Kind.STARVED):
            return self.list(Ticket, pool=alarm.pool.lower())
        if kind in (Kind.JOB_FAILED, Kind.CHECKER_BROKEN, Kind.SWEEP_STALE):
            return self.list(Job)
        if kind is Kind.LEAKED:
            return self.list(Event, pool=alarm.pool.lower(), what=What.LEAKED.value, past="hour")
        if ": " in alarm.pool:
            return self._of_system(kind, *alarm.pool.split(": ", maxsplit=1))
        if kind in (Kind.EXPIRED, Kind.CHECK_STALE):
            return self.list(apps.get_model(alarm.pool), state=State.FREE.value)
        return ""

    def _of_system(self, kind: Kind, about: str, name: str) -> str:
        """Return the list that shows what is wrong with the stream, topic, ... ``name``."""
        failed, ready = DispenserTask.State.FAILED.value, DispenserTask.State.READY.value
        if f"{about}: %s" == ABOUT_LOCKS:
            of_kind, _space, name = name.partition(" ")
            return self.list(LockKind(of_kind).model, standing="waited", q=name)
        of_queues, how = QUEUE_PROBLEMS.get(kind, (Server, {}))
        lists: dict[str, tuple[Any, dict[str, str]]] = {
            ABOUT_QUEUES: (of_queues, {"task_type": name, **how}),
            ABOUT_STREAMS: (Task, {"stream": name, "standing": "unfinished"}),
            ABOUT_DISPENSERS: (
                DispenserTask,
                {"dispenser": name, "state": failed if kind is Kind.FAILED_TASKS else ready},
            ),
            ABOUT_TIMERS: (Timer, {"topic": name, "standing": "dead" if kind is Kind.DEAD_TIMERS else "due"}),
            ABOUT_CHANNELS: (Subscription, {"channel": name, "standing": "durable"}),
        }
        model, wanted = lists[f"{about}: %s"]
        return self.list(model, **wanted)

    def _may_view(self, model: Any) -> bool:
        site = self._site
        return site.is_registered(model) and site.get_model_admin(model).has_view_permission(self._request)
