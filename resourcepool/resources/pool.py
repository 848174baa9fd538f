"""A pool: the rows of one model, each leased to one holder at a time."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError, InterfaceError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Q
from django.utils.translation import gettext_noop

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.conf import POOL_OPTIONS, pool_setting
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import TIMEOUT_GRACE, statement_timeout
from resourcepool.dialect import DbNow
from resourcepool.events import Sentence
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost, ResourcePoolError
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.models import AbstractLease
from resourcepool.leases.table import Model, refuse_inherited
from resourcepool.leases.terms import Grant
from resourcepool.resources import selectors
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.request_builder import RequestBuilder, check_option
from resourcepool.resources.state import Status
from resourcepool.resources.strategy import LastHeld, LastSeen, choose
from resourcepool.waiting.acquire import aacquire, acquire, atry_now, try_now
from resourcepool.waiting.lease import delivered, make_handles
from resourcepool.waiting.models import Ticket
from resourcepool.waiting.request import Request, refuse_open_transaction

ROUNDS = 10  # of reading free rows and losing the race for them
TRIES_PER_LOOK = 3
GUESSES = 2  # of rows that were free a moment ago; after these the rows are read
FEW = 4  # free rows, which are others' a moment later: they are not guessed
LONGEST_TRY = 0.5  # seconds, after which the caller waits in line: rows that look free may be locked
THERE_IS = (
    ": {match} match, {leased} leased, {resting} cooling down or quarantined, {out} out of service"
    "; {others} others waiting for this pool"
)


class Pool:
    """Leases the rows of a model; every resource model has one as ``Model.pool``.

    Options of ``acquire``, ``lease`` and ``acquire_many`` (times in seconds or timedelta):

    - ``timeout``: how long to wait until a suitable row is free; default: RESOURCEPOOL["TIMEOUT"].
    - ``ttl``: how long the grant outlives a process that dies. A living process renews it automatically.
    - ``holder``: who has it, for people to read; default: host/pid/thread/number.
    - ``priority``: the order of service when several wait: the lowest number first, then by arrival.
    - ``strategy``: "spread" (one of the 64 longest idle), "sticky" (the one I had last) or "random" (by weight).
    - ``cooldown``: how long it rests after the release.
    - ``max_hold``: it is not renewed beyond this long after the grant.
    - ``on_lost``: called with the lease when it is lost, from a background thread.
    - ``allow_in_transaction``: claim inside the caller's open transaction; a rollback undoes it. Not in a savepoint.
    - anything else is a selector: a field of the model with a value or a list of values, or ``tags``.

    All of them raise BadOption for a wrong option, ClaimInTransaction, NotMigrated, and (only when not
    waiting) DatabaseUnavailable.
    """

    def __init__(self, **declared: Any) -> None:
        for name, value in declared.items():
            if name not in POOL_OPTIONS:
                raise BadOption(name, value, because=f"Pool takes {', '.join(POOL_OPTIONS)}")
            check_option(name, value)
        self._declared = declared
        self._bound: dict[type, Pool] = {}
        self._model: Model | None = None
        self._history: tuple[object, bool] | None = None  # the settings it was read from, and the value

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
        """The database on which leases are decided: where the project's routers write this model."""
        return router.db_for_write(self.model)

    @property
    def keeps_history(self) -> bool:
        """Whether events of its resources are recorded; read for every lease, so the setting is cached."""
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
        """Return the lease of one resource.

        Args:
            wait: False: return None at once when nothing is free.
            wishes: options and selectors, see the class.

        Raises:
            AcquireTimeout: nothing suitable came free in time.
        """
        leases = self._acquire(1, wait, criteria)
        return delivered(leases)[0] if leases else None

    def acquire_many(self, count: int, *, wait: bool = True, **criteria: Any) -> list[ResourceLease] | None:
        """Return the leases of ``count`` resources: all or nothing. See ``acquire``."""
        leases = self._acquire(count, wait, criteria)
        return None if leases is None else delivered(leases)

    @contextlib.contextmanager
    def lease(self, **criteria: Any) -> Iterator[ResourceLease]:
        """Hold one resource for a ``with`` block; raises LeaseLost at its end if it was lost meanwhile."""
        with acquire(self, self.request(1, criteria))[0] as lease:
            lease.is_delivered = True
            yield lease

    def adopt(self, pk: Any, fence: int, **criteria: Any) -> ResourceLease:
        """Take up a lease that ``hand_over`` passed to this process, under a new and higher fence.

        So if two processes get the same message, one of them gets the lease, and a process that still holds that grant
        loses it.

        Raises:
            LeaseLost: that grant has ended, or another process has adopted it.
            BadOption: this process holds that grant itself; hand it over first.
        """
        asked = self.request(1, criteria)
        options.whole("fence", fence, least=1, most=2**63 - 1)
        field: Any = self.model._meta.pk
        try:
            key = field.to_python(pk)
            field.run_validators(key)  # SQLite's driver fails on numbers that are too large
        except (ValidationError, ValueError, TypeError, ArithmeticError):
            raise BadOption(
                "pk", pk, Sentence(gettext_noop("a primary key of %(pool)s"), pool=self.model._meta.label)
            ) from None
        refuse_open_transaction(connections[self.using], asked)
        if keeper.holds(self.model, self.using, key, fence):
            raise BadOption(
                "fence", fence, "another's: this process holds that grant itself; hand it over first"
            )
        with statement_timeout():
            grant = verbs.adopt(connections[self.using], self.model, key, fence, asked.terms)
        if grant is None:
            raise LeaseLost(f"{self.model._meta.label} {pk} is not held under fence {fence} any more")
        leases: list[ResourceLease] = make_handles(self, self.using, asked, [grant])
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
        async with (await aacquire(self, self.request(1, criteria)))[0] as lease:
            lease.is_delivered = True
            yield lease

    # Used by handles and ``Resource``

    def request(self, count: int, criteria: Mapping[str, Any]) -> Request:
        """Return the checked request for these options and selectors; raises BadOption."""
        return self._requests.request(count, criteria)

    def note_release(self, lease: ResourceLease) -> None:
        """Note that ``lease`` was released in this process: its holder prefers the row next time."""
        self._last_held.note(lease.request, lease.pk)

    # Used by waiting: see ``waiting.request.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim free rows; None when there are not enough."""
        for pk in self._likely(connection, request) if request.count == 1 else ():
            if (grants := self._claim(connection, request, [pk])) is not None:
                return grants
        where, tried = self.model.where(request.selector, connection), set[Any]()
        gives_up_at = monotonic() + LONGEST_TRY
        for _ in range(ROUNDS):
            # A row that is locked by a long transaction looks free every time.
            rows = [pk for pk in choose(connection, self.model, where, request) if pk not in tried]
            for start in range(0, len(rows) - request.count + 1, request.count)[:TRIES_PER_LOOK]:
                chosen = rows[start : start + request.count]
                if (grants := self._claim(connection, request, chosen)) is not None:
                    if request.count == 1 and len(rows) > FEW:
                        self._last_seen.note(connection.alias, request.selector, rows[:start:-1])
                    return grants
                tried.update(chosen if request.count == 1 else ())
            if len(rows) < request.count or monotonic() > gives_up_at:
                return None
        return None

    def _likely(self, connection: BaseDatabaseWrapper, request: Request) -> Iterator[Any]:
        """Yield rows worth trying without reading: the one the holder had last, then those free a moment ago."""
        if request.strategy == "sticky" and (last := self._last_held.take(request)) is not None:
            yield last
        if request.strategy != "random":  # which chooses by weight among all free rows
            for _ in range(GUESSES):
                if (seen := self._last_seen.take(connection.alias, request.selector)) is None:
                    return
                yield seen

    def handle(self, using: str, grant: Grant, request: Request) -> ResourceLease:
        """Return the handle of a grant."""
        return ResourceLease(self, using, grant, request)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Raise BadOption for more rows than there are: the request would keep them all, and starve later ones."""
        if request.count > 1:
            wanted = selectors.selector_filter(self.model, request.selector)
            rows = verbs.rows_of(connection, self.model).filter(wanted).exclude(status=Status.RETIRED)
            there_are = retrying(connection, rows.count)
            if there_are < request.count:
                raise BadOption(
                    "count", request.count, f"at most {there_are}: so many match and are not retired"
                )

    def timed_out(self, request: Request, holder: str, trouble: Exception | None) -> AcquireTimeout:
        """Return the error for a request that was not filled; it counts rows by state, if the database answers."""
        number = "" if request.count == 1 else f"{request.count} of "
        wish = "" if request.selector == "{}" else f" matching {request.selector}"
        what = f"{number}{self.model._meta.label}{wish}"
        why = f": {trouble}" if trouble else self._what_there_is(request, holder)
        return AcquireTimeout(f"no {what} came free{request.within}{why}")

    def _what_there_is(self, request: Request, holder: str) -> str:
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
                found = retrying(connection, lambda: rows.aggregate(**counts))
                others = retrying(connection, tickets.exclude(holder=holder).count)
            return THERE_IS.format(**found, others=others)
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
        return acquire(self, request) if wait else try_now(self, request)

    async def _aacquire(
        self, count: int, wait: bool, criteria: Mapping[str, Any]
    ) -> list[ResourceLease] | None:
        request = self.request(count, criteria)
        return await (aacquire(self, request) if wait else atry_now(self, request))
