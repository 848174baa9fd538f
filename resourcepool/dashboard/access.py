"""What somebody may see: the pools whose resources they may view, and queues if they may view queue groups."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth import get_permission_codename
from django.http import HttpRequest
from django.utils.translation import gettext as _

from resourcepool.jobs import CHECK
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.locks.channels.models import Subscription
from resourcepool.locks.models import Lock as LockRow
from resourcepool.locks.models import Notification, RWLockPermit, SemaphorePermit
from resourcepool.queues.models import QueueGroup
from resourcepool.resources.registry import resource_models
from resourcepool.status.jobs import JobStatus
from resourcepool.taskqueue.dispenser.models import Dispenser
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.timers.models import Timer, Topic

# What the dashboard shows besides pools, to whoever may view this model.
SYSTEMS: dict[str, Any] = {
    "queues": QueueGroup,
    "streams": Stream,
    "tasks": Task,
    "dispensers": Dispenser,
    "topics": Topic,
    "timers": Timer,
    "locks": LockRow,
    "semaphores": SemaphorePermit,
    "rwlocks": RWLockPermit,
    "conditions": Notification,
    "channels": ChannelRow,
    "subscriptions": Subscription,
}


def visible_models(site: AdminSite, request: HttpRequest) -> list[Any]:
    """Return the resource models whose rows the user of ``request`` may view; none for anybody else."""
    return [model for model in resource_models() if can_view(site, request, model)]


def visible_systems(site: AdminSite, request: HttpRequest) -> set[str]:
    """Return those of ``SYSTEMS`` that the user of ``request`` may see; "tasks", "timers": with their errors."""
    return {name for name, model in SYSTEMS.items() if can_view(site, request, model)}


def can_view(site: AdminSite, request: HttpRequest, model: Any) -> bool:
    """Tell whether the user of ``request`` may view rows of ``model``, as far as this admin site says."""
    if site.is_registered(model):
        return site.get_model_admin(model).has_view_permission(request)
    opts = model._meta
    names = (f"{opts.app_label}.{get_permission_codename(action, opts)}" for action in ("view", "change"))
    return any(request.user.has_perm(name) for name in names)


def visible_jobs(jobs: Mapping[str, JobStatus], models: Sequence[Any]) -> dict[str, JobStatus]:
    """Return ``jobs`` for a user who may see only ``models``: nothing names another pool."""
    labels = {model._meta.label for model in models}
    if labels.issuperset(model._meta.label for model in resource_models()):
        return dict(jobs)
    return {
        name: _discreet(job, labels)
        for name, job in jobs.items()
        if not name.startswith(CHECK) or name.removeprefix(CHECK) in labels
    }


def _discreet(job: JobStatus, labels: set[str]) -> JobStatus:
    """Hide the text of an error, which may be about any pool, unless it is of a check of a visible one."""
    if job.failed is None or job.name.removeprefix(CHECK) in labels:
        return job
    return dataclasses.replace(job, result=_("the server's log says more"))
