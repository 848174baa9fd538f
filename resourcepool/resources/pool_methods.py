"""The methods of a pool for users: acquire, lease and adopt, and the same for asyncio."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Generic, overload

from django.core.exceptions import ValidationError
from django.db import connections

from resourcepool import options
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.threads.sync_async import ASYNC, run_sync
from resourcepool.db.timeouts import statement_timeout
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.request import Request
from resourcepool.resources.lease import M, ReleaseListener, ResourceLease
from resourcepool.resources.signatures import (
    acquire_options,
    adopt_options,
    lease_options,
    takes,
    takes_count,
    wait_options,
)
from resourcepool.translation import gettext_noop
from resourcepool.waiting.acquire import acquire, acquire_now
from resourcepool.waiting.lease import delivered, make_handles


class PoolMethods(ReleaseListener, Generic[M]):
    """The base of ``Pool``. ``criteria`` are the options and selectors of ``acquire``."""

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
        leases = self._acquire(1, wait, criteria)
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
        leases = self._acquire(count, wait, criteria)
        return None if leases is None else delivered(leases)

    @takes(lease_options)
    @contextlib.contextmanager
    def lease(self, **criteria: Any) -> Iterator[ResourceLease[M]]:
        """Lease one resource for a ``with`` block; see ``acquire``. Raises LeaseLost at its end if it was lost."""
        with run_sync(acquire, self, self.request(1, criteria))[0] as lease:
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
        leases: list[ResourceLease[M]] = make_handles(self, self.using, request, [grant])
        return delivered(leases)[0]

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
        leases = await self._aacquire(1, wait, criteria)
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
        leases = await self._aacquire(count, wait, criteria)
        return None if leases is None else delivered(leases)

    @takes(lease_options)
    @contextlib.asynccontextmanager
    async def alease(self, **criteria: Any) -> AsyncIterator[ResourceLease[M]]:
        """``lease`` for asyncio."""
        async with (await acquire(ASYNC, self, self.request(1, criteria)))[0] as lease:
            lease._is_delivered = True
            yield lease

    def request(self, count: int, criteria: Mapping[str, Any]) -> Request:
        """Return the checked request for these options and selectors; raises BadOption."""
        raise NotImplementedError

    def _acquire(self, count: int, wait: bool, criteria: Mapping[str, Any]) -> list[ResourceLease[M]] | None:
        request = self.request(count, criteria)
        return run_sync(acquire if wait else acquire_now, self, request)

    async def _aacquire(
        self, count: int, wait: bool, criteria: Mapping[str, Any]
    ) -> list[ResourceLease[M]] | None:
        request = self.request(count, criteria)
        return await (acquire if wait else acquire_now)(ASYNC, self, request)
