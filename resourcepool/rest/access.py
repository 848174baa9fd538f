"""Permissions of the caller, and the name of the caller for the history."""

from typing import Any

from django.contrib.auth import get_permission_codename
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from resourcepool.exceptions import BadOption
from resourcepool.resources.registry import resource_model, resource_models
from resourcepool.rest.errors import as_not_found
from resourcepool.text import printable


def pool_of(request: Request, action: str, pool: str) -> Any:
    """Return the model of this pool; raises NotFound, and PermissionDenied as ``require`` does."""
    with as_not_found("pool"):
        model = pool_named(request, action, pool)
    require(request, action, model)
    return model


def pool_named(request: Request, action: str, name: str) -> Any:
    """Return the model of this pool; raises BadOption, which names only pools that the user has the permission for."""
    try:
        return resource_model(name)
    except BadOption:
        allowed = [model for model in resource_models() if has_permission(request, action, model)]
        names = ", ".join(model._meta.label for model in allowed)
        why = "no such pool" + (f"; there are: {names}" if names else "")
        raise BadOption("pool", name, because=why) from None


def require(request: Request, action: str, *models: Any) -> None:
    """Raise PermissionDenied unless the user has this permission ("view", "lease", "operate") for all models."""
    for model in models:
        if not has_permission(request, action, model):
            raise PermissionDenied(f"this needs the permission {permission(action, model)}")


def has_permission(request: Request, action: str, model: Any) -> bool:
    """Whether the user has this permission for the model."""
    return bool(request.user.has_perm(permission(action, model)))


def permission(action: str, model: Any) -> str:
    return f"{model._meta.app_label}.{get_permission_codename(action, model._meta)}"


def caller(request: Request) -> str:
    """Return the caller's name for the history and for holders: "ann@203.0.113.7 (api)"."""
    return f"{user_name(request)}@{request.META.get('REMOTE_ADDR', '')[:39]} (api)"


def user_name(request: Request) -> str:
    """Return the user's name, shortened and with "?" for characters that holders' names do not allow."""
    return printable(request.user.get_username()[:30]).replace("#", "?").strip()
