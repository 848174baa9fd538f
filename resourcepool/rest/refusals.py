"""What the API refuses: errors as responses, with the name of the error and a sentence; permissions of the caller."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_permission_codename
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool.events import localized
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost, ResourcePoolError
from resourcepool.resources.registry import resource_model, resource_models
from resourcepool.text import printable

RETRIED = (423, 503)  # statuses with Retry-After
RETRY_AFTER = 1  # seconds
MAX_RETRY_AFTER = 5  # seconds, where many may retry at the same time


def retry_delay() -> int:
    """Return a random number of seconds, so that refused callers do not all retry at the same time."""
    return random.randint(1, MAX_RETRY_AFTER)  # noqa: S311 (no secret)


class NotFound(BadOption):
    """The URL names something that does not exist."""


class TooManyLeases(ResourcePoolError):
    """The user has reached the limit of leases of this pool."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.retry_after = retry_delay()


class LengthRequired(BadOption):
    """The body has no Content-Length."""


STATUSES: Mapping[type[Exception], int] = {
    NotFound: 404,
    LengthRequired: 411,
    BadOption: 400,
    LeaseLost: 409,
    AcquireTimeout: 423,
    TooManyLeases: 423,
    DatabaseUnavailable: 503,
    ResourcePoolError: 409,
}


def error_response(error: Exception, status: int) -> Response:
    data = {"error": type(error).__name__, "detail": localized(error)}
    if isinstance(error, BadOption):
        data["name"] = error.name
    headers = {"Retry-After": str(getattr(error, "retry_after", RETRY_AFTER))}
    response = Response(data, status, headers=headers if status in RETRIED else None)
    response._has_been_logged = True  # type: ignore[attr-defined]  # keeps Django from logging it: it is common
    return response


@contextmanager
def as_not_found(name: str) -> Iterator[None]:
    """Raise NotFound instead of a BadOption about ``name``, a part of the URL."""
    try:
        yield
    except BadOption as error:
        if error.name == name:
            raise NotFound(name, error.value, error.allowed, error.because) from None
        raise


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
    return bool(request.user.has_perm(permission(action, model)))


def permission(action: str, model: Any) -> str:
    return f"{model._meta.app_label}.{get_permission_codename(action, model._meta)}"


def caller(request: Request) -> str:
    """Return the caller's name for the history and for holders: "ann@203.0.113.7 (api)"."""
    return f"{user_name(request)}@{request.META.get('REMOTE_ADDR', '')[:39]} (api)"


def user_name(request: Request) -> str:
    """Return the user's name, shortened and with "?" for characters that holders' names do not allow."""
    return printable(request.user.get_username()[:30]).replace("#", "?").strip()
