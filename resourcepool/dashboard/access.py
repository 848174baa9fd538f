"""Which pools somebody may see: those whose resources they may view."""

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth import get_permission_codename
from django.http import HttpRequest

from resourcepool.resources.registry import resource_models


def visible_models(site: AdminSite, request: HttpRequest) -> list[Any]:
    """Return the resource models whose rows the user of ``request`` may view; none for anybody else."""
    return [model for model in resource_models() if _may_view(site, request, model)]


def _may_view(site: AdminSite, request: HttpRequest, model: Any) -> bool:
    if site.is_registered(model):
        return site.get_model_admin(model).has_view_permission(request)
    opts = model._meta
    names = (f"{opts.app_label}.{get_permission_codename(action, opts)}" for action in ("view", "change"))
    return any(request.user.has_perm(name) for name in names)
