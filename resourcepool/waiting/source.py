"""Leases free rows of a source, a model with waiters, at once; and the handles of granted rows."""

import logging
import weakref
from asyncio import AbstractEventLoop as Loop
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.timeouts import STATEMENT_TIMEOUT, TIMEOUT_GRACE, statement_timeout
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.models import Model
from resourcepool.leases.terms import Grant, Request
from resourcepool.waiting.assignment import assign_to_all, return_due_rows
from resourcepool.waiting.models import line_name
from resourcepool.waiting.pacing import pacing_of
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


class NoneFree(NamedTuple):
    """A claim that got no rows: what its caller must know to wait.

    Attributes:
        connection: its thread's.
        began: when it began, by this process's clock.
        had_session: whether its thread had a session of the database before.
        db_error: the database's error, if it may be back before the timeout.
    """

    connection: BaseDatabaseWrapper
    began: float
    had_session: bool
    db_error: DatabaseUnavailable | None = None


def claim(
    source: Source, request: Request, loop: Loop | None = None, *, waits: bool = True
) -> list[Any] | NoneFree:
    """Lease free rows.

    Args:
        waits: whether the caller waits if this gets none. Then none are claimed, either, if a caller had to wait for
            such rows a moment ago: a claim would probably fail.

    Raises:
        ClaimInTransaction: a transaction is open, and the request does not allow it.
        DatabaseUnavailable: only without waiting, or if the database refuses the login.
    """
    connection = connections[source.using]
    none_free = NoneFree(connection, monotonic(), connection.connection is not None)
    waits = waits and can_wait(connection, request)
    if not (waits and connection.autocommit):
        refuse_open_transaction(connection, is_allowed=request.allow_in_transaction)
    if waits:
        line = line_name(source.model, request.selector)
        if pacing_of(line, connection.alias).waits_until > none_free.began:
            return none_free
    with limited(request):
        if not (waits or connection.in_atomic_block):
            # Waiters first: callers that do not wait must not overtake them.
            assign_to_all(connection, source.model, request.selector)
        try:
            grants = source.claim_free(connection, request)
            if grants is None:
                return_due_rows(source.model, connection.alias)
        except DatabaseUnavailable as error:
            if not waits or error.is_login:
                raise  # usually wrong settings: waiting would not help, and would hide the cause
            return none_free._replace(db_error=error)
        if grants is None:
            return none_free
        return make_handles(source, connection.alias, request, grants, loop)


def limited(request: Request) -> AbstractContextManager[None]:
    """Limit statements, so that none delays the caller much beyond its timeout."""
    return statement_timeout(min(STATEMENT_TIMEOUT, request.timeout + TIMEOUT_GRACE))


def can_wait(connection: BaseDatabaseWrapper, request: Request) -> bool:
    """Whether the caller can wait: not in a transaction, because others could not see its ticket."""
    return request.timeout > 0 and not connection.in_atomic_block


def make_handles(
    source: Source, using: str, request: Request, grants: Sequence[Grant], loop: Loop | None = None
) -> list[Any]:
    """Return the handles of these grants; on an error (no more threads, for example) release all of them and raise it.

    Args:
        loop: of the task that gets them: their rows are read now, because ``lease.resource`` must not query the
            database in a task. If the loop is closed, they are lost.
    """
    leases: list[Lease] = []
    try:
        for grant in grants:
            leases.append(source.handle(using, grant, request))  # noqa: PERF401 (each must be known on an error)
        if loop is not None:
            for lease in leases:
                lease._loop = weakref.ref(loop)
                lease._load()
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
    except verbs.OWN_ERRORS as error:
        logger.warning("could not release an undelivered lease; it will expire: %s", error)


def release_quietly(leases: Sequence[Lease] | None) -> None:
    """Release these leases without raising."""
    for lease in leases or ():
        lease._stop_renewing()  # all first, so that an interruption below cannot leave one renewed
    for lease in leases or ():
        lease._release_quietly()


def delivered(leases: list[Handle]) -> list[Handle]:
    """Return these to the caller; from now on they are renewed until they are released.

    The last step: if a signal handler raises in an earlier one, the keeper lets the leases expire once nothing refers
    to them.
    """
    try:
        for lease in leases:
            lease._is_delivered = True
        return leases  # noqa: TRY300 (an interruption just here is caught, too)
    except BaseException:
        for lease in leases:
            lease._is_delivered = False
        raise
