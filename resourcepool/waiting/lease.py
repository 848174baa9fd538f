"""The source of the rows of a model with waiters, and the handles of granted rows."""

import logging
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.leases.lease import Lease
from resourcepool.leases.request import Request
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Grant
from resourcepool.waiting.release import release

Handle = TypeVar("Handle", bound=Lease)

logger = logging.getLogger(__name__)


class Source(Protocol):
    """A source of rows of one model with waiters, such as a pool."""

    @property
    def model(self) -> Model:
        """The model whose rows are leased."""

    @property
    def using(self) -> str:
        """The database of the rows."""

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim free rows, if there are enough."""

    def handle(self, using: str, grant: Grant, request: Request) -> Lease:
        """Return the handle of a grant."""

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Raise BadOption if the request can never be filled."""

    def timed_out(self, request: Request, holder: str, db_error: Exception | None) -> AcquireTimeout:
        """Return the error for a request that was not filled in time.

        Args:
            holder: the name under which it waited in line; "" if it did not.
            db_error: the error of the database that prevented it, if any.
        """


def make_handles(source: Source, using: str, request: Request, grants: Sequence[Grant]) -> list[Any]:
    """Return the handles of these grants.

    If a handle cannot be created (no more threads, for example) or a signal interrupts this, releases all grants and
    raises the error.
    """
    leases: list[Lease] = []
    try:
        for grant in grants:
            leases.append(source.handle(using, grant, request))  # noqa: PERF401 (each must be known on an error)
    except BaseException:
        release_quietly(leases)
        for grant in grants[len(leases) :]:
            release_grant(source, using, grant)
        raise
    return leases


def release_grant(source: Source, using: str, grant: Grant) -> None:
    """Release a granted row that has no handle; if that fails, it expires."""
    try:
        release(connections[using], source.model, grant.pk, grant.fence, trusted_until=0.0)
    except DatabaseUnavailable as error:
        logger.warning("could not release an undelivered lease; it will expire: %s", error)
    except Exception:
        logger.exception("could not release an undelivered lease; it will expire")


def release_quietly(leases: Sequence[Lease] | None) -> None:
    """Release these leases without raising."""
    for lease in leases or ():
        lease._stop_renewing()  # all first, so that an interruption below cannot leave one renewed
    for lease in leases or ():
        lease._release_quietly()


def load(leases: Sequence[Lease], loop: AbstractEventLoop) -> None:
    """Read the lazy values of these leases now, for a task of ``loop``; if the loop is closed, they are lost."""
    for lease in leases:
        lease._loop = weakref.ref(loop)
        lease._load()


def delivered(leases: list[Handle]) -> list[Handle]:
    """Return these to the caller; from now on they are renewed until they are released.

    The last step: if a signal handler raises in an earlier one, the keeper lets the leases expire once nothing refers
    to them.
    """
    for lease in leases:
        lease._is_delivered = True
    return leases
