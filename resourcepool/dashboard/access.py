"""Which pools and jobs a user may see on the dashboard, by their permissions to view models."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth import get_permission_codename
from django.http import HttpRequest

from resourcepool.jobs import CHECK
from resourcepool.resources.registry import resource_models
from resourcepool.status.internals import JobStatus
from resourcepool.translation import gettext as _


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
