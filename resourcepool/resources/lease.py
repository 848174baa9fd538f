"""The handle of a leased resource."""

import logging
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.retry import retrying
from resourcepool.db.sync_async import ASYNC, for_asyncio, in_thread, run_sync
from resourcepool.db.timeouts import statement_timeout
from resourcepool.events import sentence_for
from resourcepool.events.field import SentenceField
from resourcepool.exceptions import LeaseLost, ResourcePoolError, SecretUnreadable
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.models import AbstractLease
from resourcepool.leases.statements import instance
from resourcepool.leases.terms import Grant, Request
from resourcepool.options import Seconds
from resourcepool.resources.state import MAX_REASON, next_strikes, quarantine_limits, quarantine_seconds
from resourcepool.signals import EventKind
from resourcepool.waiting import release
from resourcepool.waiting.acquire import acquire

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default before Python 3.13; needed by type checkers only

    M = TypeVar("M", bound=AbstractLease, default=Any)
else:
    from typing import TypeVar

    M = TypeVar("M")

logger = logging.getLogger(__name__)

DELETED = sentence_for("row_deleted")


class ResourceLease(Lease, Generic[M]):
    """A lease of a resource, a row of the model ``M``. See ``Lease`` for its guarantees and their limits."""

    _next_in_line: ClassVar[Any] = release

    def __init__(self, pool: Any, using: str, grant: Grant, request: Request) -> None:
        self._pool, self._request = pool, request
        self._resource: M | None = None
        super().__init__(pool.model, using, grant, request.terms)

    @property
    def resource(self) -> M:
        """The model instance; read from the database on first use.

        Raises:
            LeaseLost: its row has been deleted.
        """
        if self._resource is None:
            trust = self._trust
            with statement_timeout():
                self._resource = instance(connections[self.using], self.model, self.pk)
            if self._resource is None:
                self._lose(DELETED, trust)
                self.ensure_held()
                raise LeaseLost(f"{self} is lost: {DELETED}")  # another thread is releasing or moving it
        return self._resource

    def _load(self) -> None:
        """Read the model instance now."""
        self.resource  # noqa: B018 (reads it)

    def release(self) -> None:
        """Release the resource; it cools down before the next lease. Raises as ``Lease.release``."""
        super().release()
        self._pool.last_held.note(self._request, self.pk)

    def quarantine(self, reason: str) -> None:
        """End the lease and quarantine the resource, for twice as long after each consecutive strike.

        Args:
            reason: one line for people; without secrets.

        Raises:
            LeaseLost: the lease was lost before; a new holder is not disturbed.
            BadOption: the reason is empty, too long or not one line.
        """
        self._quarantine(reason, EventKind.QUARANTINED)

    def _quarantine(self, reason: str, what: EventKind) -> None:
        self.ensure_held()
        reason = options.text("reason", reason, most=MAX_REASON)
        limits = quarantine_limits()

        def send(connection: BaseDatabaseWrapper) -> int:
            row = (self.model, self.pk, self.fence)
            settle = partial(verbs.settle_release, connection, *row, self._trust.until)
            return retrying(connection, partial(self._store_quarantine, reason, *limits), settle=settle)

        self._give_up(what, f"quarantined ({reason})", send, reason)

    def _quarantine_if_unreadable(self, error: SecretUnreadable) -> bool:
        """Quarantine the resource if ``error`` is about its own secret; return whether it did. Never raises.

        Without this, the next holder would get the unreadable resource. Only an error with a ``row`` counts: if this
        process could never read a secret of that column, its keys may be wrong.
        """
        if error.row != (self.model, self.pk):
            return False
        try:
            self.quarantine(sentence_for("password_unreadable"))
        except ResourcePoolError:
            return False
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, SecretUnreadable):
            self._quarantine_if_unreadable(error)
        super().__exit__(kind, error, trace)

    def fix(self, reason: str, *, timeout: Seconds | None = None) -> None:
        """Quarantine the resource and move this handle to another one, acquired with the same request.

        Blocks until another resource is free, at most ``timeout``; ``fix(reason, timeout=0)`` does not wait.
        ``fence``, ``pk`` and ``resource`` change. If no resource comes free in time, the handle is released, and the
        bad resource stays in quarantine.

        Args:
            reason: one line for people.
            timeout: how long to wait for another resource (seconds or timedelta); default: as it was acquired, which
                is 60 s unless ``acquire`` or RESOURCEPOOL["TIMEOUT"] says otherwise.

        Raises:
            LeaseLost: the lease was lost before.
            AcquireTimeout: no other resource came free in time.
            ClaimInTransaction: a transaction is open; nothing was changed.
        """
        request = self._same_request(timeout)
        self._quarantine(reason, EventKind.FIXED)
        self._log_search(request)
        self._become(run_sync(acquire, self._pool, request)[0])

    def _same_request(self, timeout: Seconds | None) -> Request:
        request = self._request.again(timeout)
        refuse_open_transaction(connections[self.using], is_allowed=request.allow_in_transaction)
        return request

    def _log_search(self, request: Request) -> None:
        logger.info("%s: quarantined; waiting up to %g s for another resource", self, request.timeout)

    def _become(self, other: "ResourceLease[M]") -> None:
        other._state.end("moved to another handle")
        keeper.remove(other)
        self._request, self._terms, self._resource = other._request, other._terms, other._resource
        self.lost.clear()
        grant = Grant(other.pk, other.fence, other.holder, other._trust.sent_at, other._trust.valid_for)
        self._take(grant, self._connection)

    def _store_quarantine(self, reason: str, base: float, cap: float) -> int:
        own_row = verbs.rows_of(self._connection, self.model).filter(pk=self.pk, fence=self.fence)
        row = own_row.values_list("strikes", "struck_at", DbNow()).first()
        if row is None:
            return 0
        strikes = next_strikes(*row)
        seconds = quarantine_seconds(strikes, base, cap)
        return own_row.update(
            busy_before=DbLater(seconds),
            fence=models.F("fence") + 1,
            holder="",
            status=_unless_out("status", models.Value("quarantined")),
            reason=_unless_out("reason", models.Value(reason, SentenceField())),
            until=_unless_out("until", DbLater(seconds)),
            strikes=strikes,
            struck_at=DbNow(),
        )

    arelease = for_asyncio(release)
    arenew = for_asyncio(Lease.renew)
    aquarantine = for_asyncio(quarantine)

    async def afix(self, reason: str, *, timeout: Seconds | None = None) -> None:
        """``fix`` for asyncio; waiting for another resource occupies no thread."""
        request = await in_thread(self._same_request, timeout)
        await in_thread(self._quarantine, reason, EventKind.FIXED)
        self._log_search(request)
        await in_thread(self._become, (await acquire(ASYNC, self._pool, request))[0])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self.__exit__, kind, error, trace)


def _unless_out(column: str, value: models.expressions.Combinable) -> models.Case:
    """Return ``value``, but keep an operator's value if the resource is out of service."""
    return models.Case(models.When(in_service=True, then=value), default=models.F(column))
