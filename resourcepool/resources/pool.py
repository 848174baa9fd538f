"""A pool leases the rows of one model, each to one holder at a time."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta
from typing import Any, Generic, TypeVar, Unpack, overload

from django.conf import settings
from django.db import connections
from django.db.models.base import ModelBase
from django.utils.asyncio import async_unsafe

from resourcepool import options
from resourcepool.conf import POOL_OPTIONS, pool_setting, refuse_unknown_settings
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.sync_async import ASYNC, USE_ASYNC, run_sync
from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import BadOption, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.models import AbstractLease, refuse_inherited
from resourcepool.leases.terms import Request
from resourcepool.resources.lease import M, ResourceLease
from resourcepool.resources.requests import (
    PoolOptions,
    acquire_options,
    adopt_options,
    check_option,
    check_request,
    lease_options,
    takes,
    takes_count,
    wait_options,
)
from resourcepool.resources.selectors import parse_key
from resourcepool.resources.source import PoolSource
from resourcepool.waiting.acquire import acquire, acquire_now, wait_for
from resourcepool.waiting.source import claim, delivered, make_handles

MAX_CACHED = 1_000  # requests per pool
CACHEABLE = (str, int, float, bool, timedelta, type(None))  # types compared by value

Owner = TypeVar("Owner", bound=AbstractLease)


class Pool(PoolSource[M], Generic[M]):
    """Leases the rows of a model; every resource model has one as ``Model.pool``.

    A model may set defaults of its own, such as ``pool = Pool(ttl=120, cooldown=5)``; see ``PoolOptions``.
    ``criteria`` are the options and selectors of ``acquire``.
    """

    def __init__(self, **declared: Unpack[PoolOptions]) -> None:
        for name, value in declared.items():
            if name not in POOL_OPTIONS:
                raise BadOption(name, value, because=f"Pool takes {', '.join(POOL_OPTIONS)}")
            check_option(name, value)
        self._declared = declared
        self._bound: dict[type, Pool[Any]] = {}
        self._checked: dict[Any, Request] = {}
        self._settings: object = None  # for which the requests were checked
        # The settings object that it was read from, and the value.
        self._history: tuple[object, bool] | None = None

    def __get__(self, instance: object, owner: type[Owner]) -> "Pool[Owner]":
        pool: Pool[Any] | None = self if self._model is not None else self._bound.get(owner)
        if pool is None:
            self._bound[owner] = pool = Pool(**self._declared)
            pool._model = owner
        return pool

    def __repr__(self) -> str:
        return f"<Pool of {self._model._meta.label}>" if isinstance(self._model, ModelBase) else "<Pool>"

    @property
    def keeps_history(self) -> bool:
        """Whether events of its resources are recorded; cached, because every lease reads it."""
        # No local variable may refer to the settings: error reports show these, and the settings have keys.
        if self._history is None or self._history[0] is not getattr(settings, "RESOURCEPOOL", None):
            keeps = pool_setting(self.model._meta.label, "history", self._declared) is True
            self._history = getattr(settings, "RESOURCEPOOL", None), keeps
        return self._history[1]

    def request(self, count: int, criteria: Mapping[str, Any]) -> Request:
        """Return the checked request for these options and selectors; raises BadOption.

        Requests are cached, because most callers repeat the same one.
        """
        # No local variable may refer to the settings: error reports show these, and the settings have keys.
        if self._settings is not getattr(settings, "RESOURCEPOOL", None):
            refuse_inherited(self.model)
            refuse_unknown_settings(self.model._meta.label)
            self._settings, self._checked = getattr(settings, "RESOURCEPOOL", None), {}
        checked = self._checked  # by these settings; another thread may replace it meanwhile
        # The types are part of the key, because 1 == True.
        key = (type(count), count, *criteria.items(), *map(type, criteria.values()))
        try:
            if (known := checked.get(key)) is not None:
                return known
        except TypeError:  # unhashable, such as a list
            pass
        request = check_request(self.model, self._declared, count, criteria)
        # Not with a holder name (mostly used once), nor with mutable values or values with their own equality.
        if request.terms.holder_is_unique and all(type(value) in CACHEABLE for value in criteria.values()):
            if len(checked) >= MAX_CACHED:
                checked.clear()
            checked[key] = request
        return request

    # Leases, for threads

    @overload
    @takes(wait_options)
    def acquire(self, **criteria: Any) -> ResourceLease[M]: ...
    @overload
    @takes(acquire_options)
    def acquire(self, **criteria: Any) -> ResourceLease[M] | None: ...
    @takes(acquire_options)
    def acquire(self, *, wait: bool = True, **criteria: Any) -> ResourceLease[M] | None:
        """Lease one resource. Times are in seconds or timedelta; None: the pool's default.

        Args:
            wait: False: return None at once if no matching resource is free.
            timeout: how long to wait until a matching resource is free.
            ttl: how long the lease outlives a crashed process. A running process renews it automatically.
            holder: the name of the holder, for people; None: host/pid/thread/number.
            priority: the order of waiters: the lowest number first, then by arrival.
            strategy: "spread" (one of the 64 longest idle), "sticky" (the last one of this holder) or "random" (by
                weight).
            cooldown: how long the resource stays unavailable after its release.
            max_hold: the lease is not renewed beyond this time after it was granted.
            on_lost: called with the lease from a background thread when it is lost.
            allow_in_transaction: claim inside the caller's open transaction; a rollback undoes it. Not in a savepoint.
            fields: selectors: a field of the model with a value or a collection of values, or ``tags``. Numbers go
                into a collection, ``port=[80]``: so type checkers find a misspelt option, such as ``timout=3``.

        Raises:
            AcquireTimeout: no matching resource came free in time.
            BadOption: an option or a selector is wrong.
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: only with ``wait=False``, or if the database refuses the login.
        """
        leases = self._lease(self.request(1, criteria), wait)
        return delivered(leases)[0] if leases else None

    @overload
    @takes_count(wait_options)
    def acquire_many(self, count: int, **criteria: Any) -> list[ResourceLease[M]]: ...
    @overload
    @takes_count(acquire_options)
    def acquire_many(self, count: int, **criteria: Any) -> list[ResourceLease[M]] | None: ...
    @takes_count(acquire_options)
    def acquire_many(self, count: int, *, wait: bool = True, **criteria: Any) -> list[ResourceLease[M]] | None:
        """Lease ``count`` resources, all or none; see ``acquire``."""
        leases = self._lease(self.request(count, criteria), wait)
        return delivered(leases) if leases else None

    @takes(lease_options)
    @contextlib.contextmanager
    def lease(self, **criteria: Any) -> Iterator[ResourceLease[M]]:
        """Lease one resource for a ``with`` block; see ``acquire``. Raises LeaseLost at its end if it was lost."""
        with self._lease(self.request(1, criteria))[0] as lease:
            lease._is_delivered = True
            yield lease

    @takes(adopt_options)
    def adopt(self, pk: Any, fence: int, **criteria: Any) -> ResourceLease[M]:
        """Adopt a lease that ``hand_over`` passed to this process, under a new, higher fence.

        If two processes get the same message, only one of them gets the lease. A process that still holds the old
        grant loses it.

        Raises:
            LeaseLost: the grant has ended, or another process has adopted it.
            BadOption: this process holds the grant itself; hand it over first.
        """
        request = self.request(1, criteria)
        options.whole("fence", fence, least=1, most=2**63 - 1)
        key = parse_key(self.model, pk, "pk")
        refuse_open_transaction(connections[self.using], is_allowed=request.allow_in_transaction)
        if keeper.holds(self.model, self.using, key, fence):
            raise BadOption(
                "fence", fence, "a grant of another process; this one holds it itself, hand it over first"
            )
        with statement_timeout():
            grant = verbs.adopt(connections[self.using], self.model, key, fence, request.terms)
        if grant is None:
            raise LeaseLost(f"{self.model._meta.label} {pk} is no longer held under fence {fence}")
        leases: list[ResourceLease[M]] = make_handles(self, self.using, request, [grant])
        return delivered(leases)[0]

    @async_unsafe(USE_ASYNC)
    def _lease(self, request: Request, wait: bool = True) -> list[ResourceLease[M]]:
        """Claim free rows; if there are too few, wait in line, or return []. Raises like ``acquire``."""
        claimed = claim(self, request, waits=wait is True or options.flag("wait", wait))
        if isinstance(claimed, list):
            return claimed
        return run_sync(wait_for, self, request, claimed) if wait else []

    # The same for asyncio

    @overload
    @takes(wait_options)
    async def aacquire(self, **criteria: Any) -> ResourceLease[M]: ...
    @overload
    @takes(acquire_options)
    async def aacquire(self, **criteria: Any) -> ResourceLease[M] | None: ...
    @takes(acquire_options)
    async def aacquire(self, *, wait: bool = True, **criteria: Any) -> ResourceLease[M] | None:
        """``acquire`` for asyncio; waiting occupies no thread."""
        leases = await (acquire if options.flag("wait", wait) else acquire_now)(
            ASYNC, self, self.request(1, criteria)
        )
        return delivered(leases)[0] if leases else None

    @overload
    @takes_count(wait_options)
    async def aacquire_many(self, count: int, **criteria: Any) -> list[ResourceLease[M]]: ...
    @overload
    @takes_count(acquire_options)
    async def aacquire_many(self, count: int, **criteria: Any) -> list[ResourceLease[M]] | None: ...
    @takes_count(acquire_options)
    async def aacquire_many(
        self, count: int, *, wait: bool = True, **criteria: Any
    ) -> list[ResourceLease[M]] | None:
        """``acquire_many`` for asyncio."""
        leases = await (acquire if options.flag("wait", wait) else acquire_now)(
            ASYNC, self, self.request(count, criteria)
        )
        return None if leases is None else delivered(leases)

    @takes(lease_options)
    @contextlib.asynccontextmanager
    async def alease(self, **criteria: Any) -> AsyncIterator[ResourceLease[M]]:
        """``lease`` for asyncio."""
        async with (await acquire(ASYNC, self, self.request(1, criteria)))[0] as lease:
            lease._is_delivered = True
            yield lease
