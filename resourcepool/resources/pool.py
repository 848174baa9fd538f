"""A pool leases the rows of one model, each to one holder at a time."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError, InterfaceError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Q

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.conf import POOL_OPTIONS, pool_setting
from resourcepool.database.open_transaction import refuse_open_transaction
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import TIMEOUT_GRACE, statement_timeout
from resourcepool.dialect import DbNow
from resourcepool.events import Sentence
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost, ResourcePoolError
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.models import AbstractLease
from resourcepool.leases.request import Request
from resourcepool.leases.table import Model, refuse_inherited
from resourcepool.leases.terms import Grant
from resourcepool.resources import selectors
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.request_builder import RequestBuilder, check_option
from resourcepool.resources.state import Status
from resourcepool.resources.strategy import LastHeld, LastSeen, choose
from resourcepool.threads.sync_async import ASYNC, run_sync
from resourcepool.translation import gettext_noop
from resourcepool.waiting.acquire import acquire, acquire_now
from resourcepool.waiting.lease import delivered, make_handles
from resourcepool.waiting.models import Ticket

MAX_READS = 10  # of free rows, while all races for them are lost
MAX_CLAIMS_PER_READ = 3
MAX_GUESSES = 2  # claims of recently free rows before free rows are read again
FEW_FREE = 4  # so few free rows are not remembered: others claim them at once
MAX_CLAIM_SECONDS = 0.5  # then the caller waits in line: rows that look free may be locked
ROW_COUNTS = (
    ": {match} match, {leased} leased, {resting} cooling down or quarantined, {out} out of service"
    "; {others} others waiting for this pool"
)


class Pool:
    """Leases the rows of a model; every resource model has one as ``Model.pool``.

    Options of ``acquire``, ``lease`` and ``acquire_many`` (times in seconds or timedelta):

    - ``timeout``: how long to wait until a suitable row is free; default: RESOURCEPOOL["TIMEOUT"].
    - ``ttl``: how long the lease outlives a crashed process. A running process renews it automatically.
    - ``holder``: the name of the holder, for people; default: host/pid/thread/number.
    - ``priority``: the order of waiters: the lowest number first, then by arrival.
    - ``strategy``: "spread" (one of the 64 longest idle), "sticky" (the last one of this holder) or "random" (by
      weight).
    - ``cooldown``: how long the resource stays unavailable after its release.
    - ``max_hold``: the lease is not renewed beyond this time after it was granted.
    - ``on_lost``: called with the lease from a background thread when it is lost.
    - ``allow_in_transaction``: claim inside the caller's open transaction; a rollback undoes it. Not in a savepoint.
    - other arguments are selectors: a field of the model with a value or a list of values, or ``tags``.

    All methods raise BadOption for a wrong option, ClaimInTransaction, NotMigrated, and (only when not waiting)
    DatabaseUnavailable.
    """

    def __init__(self, **declared: Any) -> None:
        for name, value in declared.items():
            if name not in POOL_OPTIONS:
                raise BadOption(name, value, because=f"Pool takes {', '.join(POOL_OPTIONS)}")
            check_option(name, value)
        self._declared = declared
        self._bound: dict[type, Pool] = {}
        self._model: Model | None = None
        self._history: tuple[object, bool] | None = (
            None  # the settings object that it was read from, and the value
        )

    def __get__(self, instance: object, owner: type) -> "Pool":
        if self._model is not None:
            return self
        if owner not in self._bound:
            self._bound[owner] = bound = Pool(**self._declared)
            bound._model = owner
        return self._bound[owner]

    @cached_property
    def model(self) -> Model:
        """The model whose rows this pool leases."""
        model: Any = self._model
        if not isinstance(model, type) or not issubclass(model, AbstractLease) or model._meta.abstract:
            raise BadOption("model", model, "a concrete Django model derived from AbstractResource")
        return model

    @property
    def using(self) -> str:
        """The database that decides leases: the one to which the project's routers write this model."""
        return router.db_for_write(self.model)

    @property
    def keeps_history(self) -> bool:
        """Whether events of its resources are recorded; cached, because every lease reads it."""
        # No local variable may refer to the settings: error reports show these, and the settings have keys.
        if self._history is None or self._history[0] is not getattr(settings, "RESOURCEPOOL", None):
            keeps = pool_setting(self.model._meta.label, "history", self._declared) is True
            self._history = getattr(settings, "RESOURCEPOOL", None), keeps
        return self._history[1]

    @cached_property
    def _requests(self) -> RequestBuilder:
        refuse_inherited(self.model)
        return RequestBuilder(self.model, self._declared)

    @cached_property
    def _last_held(self) -> LastHeld:
        return LastHeld()

    @cached_property
    def _last_seen(self) -> LastSeen:
        return LastSeen()

    # Acquiring

    def acquire(self, *, wait: bool = True, **criteria: Any) -> ResourceLease | None:
        """Lease one resource.

        Args:
            wait: False: return None at once if no matching resource is free.
            criteria: options and selectors, see the class.

        Raises:
            AcquireTimeout: no matching resource came free in time.
        """
        leases = self._acquire(1, wait, criteria)
        return delivered(leases)[0] if leases else None

    def acquire_many(self, count: int, *, wait: bool = True, **criteria: Any) -> list[ResourceLease] | None:
        """Lease ``count`` resources, all or none. See ``acquire``."""
        leases = self._acquire(count, wait, criteria)
        return None if leases is None else delivered(leases)

    @contextlib.contextmanager
    def lease(self, **criteria: Any) -> Iterator[ResourceLease]:
        """Lease one resource for a ``with`` block; raises LeaseLost at its end if the lease was lost."""
        with run_sync(acquire, self, self.request(1, criteria))[0] as lease:
            lease.is_delivered = True
            yield lease

    def adopt(self, pk: Any, fence: int, **criteria: Any) -> ResourceLease:
        """Adopt a lease that ``hand_over`` passed to this process, under a new, higher fence.

        If two processes get the same message, only one of them gets the lease. A process that still holds the old
        grant loses it.

        Raises:
            LeaseLost: the grant has ended, or another process has adopted it.
            BadOption: this process holds the grant itself; hand it over first.
        """
        request = self.request(1, criteria)
        options.whole("fence", fence, least=1, most=2**63 - 1)
        field: Any = self.model._meta.pk
        try:
            key = field.to_python(pk)
            field.run_validators(key)  # SQLite's driver fails on numbers that are too large
        except (ValidationError, ValueError, TypeError, ArithmeticError):
            raise BadOption(
                "pk", pk, Sentence(gettext_noop("a primary key of %(pool)s"), pool=self.model._meta.label)
            ) from None
        refuse_open_transaction(connections[self.using], is_allowed=request.allow_in_transaction)
        if keeper.holds(self.model, self.using, key, fence):
            raise BadOption(
                "fence", fence, "a grant of another process; this one holds it itself, hand it over first"
            )
        with statement_timeout():
            grant = verbs.adopt(connections[self.using], self.model, key, fence, request.terms)
        if grant is None:
            raise LeaseLost(f"{self.model._meta.label} {pk} is no longer held under fence {fence}")
        leases: list[ResourceLease] = make_handles(self, self.using, request, [grant])
        return delivered(leases)[0]

    # The same for asyncio

    async def aacquire(self, *, wait: bool = True, **criteria: Any) -> ResourceLease | None:
        """``acquire`` for asyncio; waiting occupies no thread."""
        leases = await self._aacquire(1, wait, criteria)
        return delivered(leases)[0] if leases else None

    async def aacquire_many(
        self, count: int, *, wait: bool = True, **criteria: Any
    ) -> list[ResourceLease] | None:
        """``acquire_many`` for asyncio."""
        leases = await self._aacquire(count, wait, criteria)
        return None if leases is None else delivered(leases)

    @contextlib.asynccontextmanager
    async def alease(self, **criteria: Any) -> AsyncIterator[ResourceLease]:
        """``lease`` for asyncio."""
        async with (await acquire(ASYNC, self, self.request(1, criteria)))[0] as lease:
            lease.is_delivered = True
            yield lease

    # Used by handles and ``Resource``

    def request(self, count: int, criteria: Mapping[str, Any]) -> Request:
        """Return the checked request for these options and selectors; raises BadOption."""
        return self._requests.request(count, criteria)

    def note_release(self, lease: ResourceLease) -> None:
        """Remember the row for the strategy "sticky" of its holder."""
        self._last_held.note(lease.request, lease.pk)

    # Used by waiting: see ``waiting.request.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim free rows; None if too few are free."""
        for pk in self._guesses(connection, request) if request.count == 1 else ():
            if (grants := self._claim(connection, request, [pk])) is not None:
                return grants
        where, tried = self.model.where(request.selector, connection), set[Any]()
        gives_up_at = monotonic() + MAX_CLAIM_SECONDS
        for _ in range(MAX_READS):
            # Rows that a long transaction has locked look free again and again.
            rows = [pk for pk in choose(connection, self.model, where, request) if pk not in tried]
            for start in range(0, len(rows) - request.count + 1, request.count)[:MAX_CLAIMS_PER_READ]:
                chosen = rows[start : start + request.count]
                if (grants := self._claim(connection, request, chosen)) is not None:
                    if request.count == 1 and len(rows) > FEW_FREE:
                        self._last_seen.note(connection.alias, request.selector, rows[:start:-1])
                    return grants
                tried.update(chosen if request.count == 1 else ())
            if len(rows) < request.count or monotonic() > gives_up_at:
                return None
        return None

    def _guesses(self, connection: BaseDatabaseWrapper, request: Request) -> Iterator[Any]:
        """Yield rows to claim without reading: the last one of the holder, then recently free ones."""
        if request.strategy == "sticky" and (last := self._last_held.take(request)) is not None:
            yield last
        if request.strategy != "random":  # "random" chooses by weight among all free rows
            for _ in range(MAX_GUESSES):
                if (seen := self._last_seen.take(connection.alias, request.selector)) is None:
                    return
                yield seen

    def handle(self, using: str, grant: Grant, request: Request) -> ResourceLease:
        """Return the handle of a grant."""
        return ResourceLease(self, using, grant, request)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Raise BadOption for more rows than exist: such a request would collect all rows and starve others."""
        if request.count > 1:
            wanted = selectors.selector_filter(self.model, request.selector)
            rows = verbs.rows_of(connection, self.model).filter(wanted).exclude(status=Status.RETIRED)
            total = retrying(connection, rows.count)
            if total < request.count:
                raise BadOption(
                    "count",
                    request.count,
                    f"at most {total}, the number of matching resources that are not retired",
                )

    def timed_out(self, request: Request, holder: str, error: Exception | None) -> AcquireTimeout:
        """Return the timeout error, with row counts by state if the database answers."""
        number = "" if request.count == 1 else f"{request.count} of "
        matching = "" if request.selector == "{}" else f" matching {request.selector}"
        what = f"{number}{self.model._meta.label}{matching}"
        why = f": {error}" if error else self._row_counts(request, holder)
        return AcquireTimeout(f"no {what} came free{request.within}{why}")

    def _row_counts(self, request: Request, holder: str) -> str:
        connection, busy = connections[self.using], Q(busy_before__gt=DbNow())
        rows = verbs.rows_of(connection, self.model).filter(
            selectors.selector_filter(self.model, request.selector)
        )
        tickets = Ticket.objects.using(connection.alias).waiting().for_rows_of(self.model)
        counts = {
            "match": Count("pk"),
            "leased": Count("pk", filter=busy & ~Q(holder="")),
            "resting": Count("pk", filter=busy & Q(holder="", in_service=True)),
            "out": Count("pk", filter=Q(in_service=False)),
        }
        try:
            with statement_timeout(TIMEOUT_GRACE):
                numbers = retrying(connection, lambda: rows.aggregate(**counts))
                others = retrying(connection, tickets.exclude(holder=holder).count)
            return ROW_COUNTS.format(**numbers, others=others)
        except DatabaseUnavailable as error:
            return f": {error}"
        except (DatabaseError, InterfaceError, ResourcePoolError):
            return ""

    def _claim(self, connection: BaseDatabaseWrapper, request: Request, pks: list[Any]) -> list[Grant] | None:
        if len(pks) > 1:
            return verbs.claim_all(connection, self.model, pks, request.terms)
        where = self.model.where(request.selector, connection)
        grant = verbs.claim(connection, self.model, pks[0], request.terms, where)
        return None if grant is None else [grant]

    def _acquire(self, count: int, wait: bool, criteria: Mapping[str, Any]) -> list[ResourceLease] | None:
        request = self._requests.request(count, criteria)
        return run_sync(acquire if wait else acquire_now, self, request)

    async def _aacquire(
        self, count: int, wait: bool, criteria: Mapping[str, Any]
    ) -> list[ResourceLease] | None:
        request = self.request(count, criteria)
        return await (acquire if wait else acquire_now)(ASYNC, self, request)
