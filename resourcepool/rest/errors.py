"""How errors are answered: the kind, and a sentence."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rest_framework.response import Response

from resourcepool.events import localized
from resourcepool.exceptions import (
    AcquireTimeout,
    BadOption,
    DatabaseUnavailable,
    LeaseLost,
    ResourcePoolError,
)

RETRY_AFTER = 1  # seconds
LATEST = 5  # seconds, where many are told to come again


def retry_delay() -> int:
    """Return a number of seconds after which to come again, another one each time: not all are to come together."""
    return random.randint(1, LATEST)  # noqa: S311 (no secret)


class NotFound(BadOption):
    """There is nothing of the name that an address has."""


class TooManyLeases(ResourcePoolError):
    """The user has as many leases of this pool as one may have."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.retry_after = retry_delay()


class LengthRequired(BadOption):
    """A body came without its length."""


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
LATER = (423, 503)  # statuses after which to try again


def error_response(error: Exception, status: int) -> Response:
    data = {"error": type(error).__name__, "detail": localized(error)}
    if isinstance(error, BadOption):
        data["name"] = error.name
    later = {"Retry-After": str(getattr(error, "retry_after", RETRY_AFTER))}
    answer = Response(data, status, headers=later if status in LATER else None)
    answer._has_been_logged = True  # type: ignore[attr-defined]  # by Django: it happens all the time
    return answer


@contextmanager
def as_not_found(name: str) -> Iterator[None]:
    """Raise NotFound in place of a BadOption about ``name``, which the address gives."""
    try:
        yield
    except BadOption as error:
        if error.name == name:
            raise NotFound(name, error.value, error.allowed, error.because) from None
        raise
