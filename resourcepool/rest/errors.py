"""Errors as responses: the name of the error, and a sentence."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rest_framework.response import Response

from resourcepool.events import localized
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost, ResourcePoolError

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
RETRIED = (423, 503)  # statuses with Retry-After


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
