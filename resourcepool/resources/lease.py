"""The handle of a leased resource."""

from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.dialect import DbLater, DbNow
from resourcepool.events import SentenceField, sentence_for
from resourcepool.exceptions import LeaseLost, ResourcePoolError, SecretUnreadable
from resourcepool.leases import verbs
from resourcepool.leases.instance import instance
from resourcepool.leases.terms import Grant
from resourcepool.resources.quarantine import QuarantinePolicy, next_strikes, quarantine_seconds
from resourcepool.resources.state import MAX_REASON
from resourcepool.signals import EventKind
from resourcepool.threads.async_threads import in_thread
from resourcepool.waiting.acquire import aacquire, acquire
from resourcepool.waiting.lease import AwaitedLease
from resourcepool.waiting.request import Request, Source, refuse_open_transaction

DELETED = sentence_for("row_deleted")


class ReleaseListener(Source, Protocol):
    """The pool that a lease came from, as far as the lease uses it."""

    def note_release(self, lease: "ResourceLease") -> None:
        """Note that ``lease`` was released in this process."""


class ResourceLease(AwaitedLease):
    """A lease whose row is a resource. See ``Lease`` for what it promises and what it does not."""

    def __init__(self, pool: ReleaseListener, using: str, grant: Grant, request: Request) -> None:
        self.pool, self.request = pool, request
        self._resource: Any = None
        super().__init__(pool.model, using, grant, request.terms)

    @property
    def resource(self) -> Any:
        """The model instance; read from the database on first use.

        Raises:
            LeaseLost: its row has been deleted.
        """
        if self._resource is None:
            trust = self.trust
            with statement_timeout():
                self._resource = instance(connections[self.using], self.model, self.pk)
            if self._resource is None:
                self.lose(DELETED, trust)
                self.ensure_held()
                raise LeaseLost(f"{self} is lost: {DELETED}")  # it is just being given up, or was moved
        return self._resource

    def load(self) -> None:
        """Read the model instance now."""
        self.resource  # noqa: B018 (reads it)

    def release(self) -> None:
        """Give the resource back, to rest for its cool-down; raises as ``Lease.release``."""
        super().release()
        self.pool.note_release(self)

    def quarantine(self, reason: str, *, what: EventKind = EventKind.QUARANTINED) -> None:
        """Give the resource back as bad: nobody gets it for a while, twice as long with each consecutive strike.

        Args:
            reason: why, one line for people; without secrets.
            what: the kind of event that is sent.

        Raises:
            LeaseLost: it was lost before; its new holder is not disturbed.
            BadOption: the reason is empty, too long or not one line.
        """
        self.ensure_held()
        reason = options.text("reason", reason, most=MAX_REASON)
        policy = QuarantinePolicy.from_settings()

        def send(connection: BaseDatabaseWrapper) -> int:
            row = (self.model, self.pk, self.fence)
            settle = partial(verbs.settle_release, connection, *row, self.trust.until)
            return retrying(connection, partial(self._park, reason, policy), settle=settle)

        self._give_up(what, f"quarantined ({reason})", send, reason)

    def quarantine_if_unreadable(self, error: SecretUnreadable) -> bool:
        """Quarantine the resource if ``error`` is about its own secret; tell whether it was. Others would get it next.

        Not if this process has read no other secret of that column: then its keys may be at fault. Raises nothing.
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
            self.quarantine_if_unreadable(error)
        super().__exit__(kind, error, trace)

    def fix(self, reason: str, *, timeout: object = None) -> None:
        """Quarantine the resource and move this handle to another one, requested in the same way (R0.6).

        ``fence``, ``pk`` and ``resource`` are new afterwards. If nothing comes free in time, the handle
        is released and the bad resource stays in quarantine.

        Args:
            reason: why, one line for people.
            timeout: how long to wait for another one (seconds or timedelta); default: as it was acquired.

        Raises:
            LeaseLost: it was lost before.
            AcquireTimeout: no other one came free in time.
            ClaimInTransaction: a transaction is open; nothing has been done.
        """
        again = self._ask_again(timeout)
        self.quarantine(reason, what=EventKind.FIXED)
        self._become(acquire(self.pool, again)[0])

    def _ask_again(self, timeout: object) -> Request:
        again = self.request.again(timeout)
        refuse_open_transaction(connections[self.using], again)
        return again

    def _become(self, other: "ResourceLease") -> None:
        other._finish("moved to another handle")
        self.request, self.terms, self._resource = other.request, other.terms, other._resource
        self.lost.clear()
        grant = Grant(other.pk, other.fence, other.holder, other.trust.sent_at, other.trust.valid_for)
        self._take(grant, self._connection)

    def _park(self, reason: str, policy: QuarantinePolicy) -> int:
        mine = verbs.rows_of(self._connection, self.model).filter(pk=self.pk, fence=self.fence)
        row = mine.values_list("strikes", "struck_at", DbNow()).first()
        if row is None:
            return 0
        strikes = next_strikes(*row)
        seconds = quarantine_seconds(strikes, policy)
        return mine.update(
            busy_before=DbLater(seconds),
            fence=models.F("fence") + 1,
            holder="",
            status=_unless_out("status", models.Value("quarantined")),
            reason=_unless_out("reason", models.Value(reason, SentenceField())),
            until=_unless_out("until", DbLater(seconds)),
            strikes=strikes,
            struck_at=DbNow(),
        )

    async def arelease(self) -> None:
        """``release`` for asyncio."""
        await in_thread(self.release)

    async def arenew(self) -> None:
        """``renew`` for asyncio."""
        await in_thread(self.renew)

    async def aquarantine(self, reason: str) -> None:
        """``quarantine`` for asyncio."""
        await in_thread(self.quarantine, reason)

    async def afix(self, reason: str, *, timeout: object = None) -> None:
        """``fix`` for asyncio; waiting for another one occupies no thread."""
        again = await in_thread(self._ask_again, timeout)
        await in_thread(partial(self.quarantine, reason, what=EventKind.FIXED))
        await in_thread(self._become, (await aacquire(self.pool, again))[0])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self.__exit__, kind, error, trace)


def _unless_out(column: str, value: models.expressions.Combinable) -> models.Case:
    """Return the new ``value``, except for a resource out of service, which keeps what an operator wrote."""
    return models.Case(models.When(in_service=True, then=value), default=models.F(column))
