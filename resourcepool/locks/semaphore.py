"""A semaphore for all processes on all hosts, with the methods of ``threading.BoundedSemaphore``.

Each permit is a leased row, so the permits of a crashed process become free again.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Max, Q

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow, MicrosUntil
from resourcepool.exceptions import BadOption, NotHeld
from resourcepool.leases import verbs
from resourcepool.leases.terms import Grant, Request
from resourcepool.locks.base import TTL
from resourcepool.locks.hold import Hold
from resourcepool.locks.lockable import Lockable
from resourcepool.locks.models import AbstractPermit, SemaphorePermit
from resourcepool.locks.permits import PermitLease, Permits, warn_once
from resourcepool.locks.registry import Key, holds, is_of_caller
from resourcepool.locks.resize import MAX_PERMITS, resize
from resourcepool.options import Seconds
from resourcepool.threads.async_threads import for_asyncio, in_thread
from resourcepool.threads.sync_async import ASYNC, Mode, run_sync
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.lease import delivered

MAX_PERMITS_AT_ONCE = 1_000


class SemaphoreLease(PermitLease):
    """The lease of one permit; any thread of the process can release it."""

    is_of_owner = False


class SemaphoreHold(Hold):
    """The permits of one ``acquire``; ``is_of_block``: a ``with`` block releases them."""

    leases: Sequence[PermitLease] = ()
    is_of_block = False

    def __init__(self, key: Key, on_lost: Callable[[Hold], object] | None) -> None:
        super().__init__(key[-1], on_lost)
        self.key = key

    def release(self) -> None:
        """Release these permits, whichever thread acquired them.

        Raises:
            NotHeld: they were released before.
            LeaseLost: one was lost before; the others are released.
            DatabaseUnavailable: they will expire.
        """
        if not holds.remove(self):
            raise NotHeld(f"{self!r} was released before")
        PermitLease.release_together(self.leases)

    arelease = for_asyncio(release)

    def _stop_renewing(self) -> None:
        """Stop renewing them: permits that are not released expire."""
        for lease in self.leases:
            lease._stop_renewing()
        holds.remove(self)


class Semaphore(Permits, Lockable[SemaphoreHold]):
    """A semaphore known by its name; see ``Named`` for the other options and ``Hold`` for its limits.

        licences = Semaphore("licence", 5)
        with licences as held: ...
        licences.acquire(n=2, timeout=10)   # both or none
        licences.release(2)

    Permits belong to the process, as with ``threading``: any thread may release a permit that another one acquired, and
    acquiring again takes one more permit.

    ``value`` applies only at the first use of the name; later ``resize`` changes it. If code and database differ, the
    database wins, and a warning is logged once per process.

    Args:
        value: initial number of permits, 0 to 10,000.
    """

    model: ClassVar[type[SemaphorePermit]] = SemaphorePermit
    lease = SemaphoreLease
    kind = "semaphore"

    def __init__(
        self,
        name: str,
        value: int = 1,
        *,
        ttl: Seconds = TTL,
        timeout: Seconds | None = None,
        on_lost: Callable[[Hold], object] | None = None,
    ) -> None:
        super().__init__(name, ttl=ttl, timeout=timeout, on_lost=on_lost)
        self.permits = options.whole("value", value, least=0, most=MAX_PERMITS)
        # Holds of open ``with`` blocks, in order. ``registry.forget`` does not remove them: the end of the block would
        # release a permit that another thread acquired since.
        self._blocks: list[SemaphoreHold] = []

    def acquire(
        self, blocking: bool = True, timeout: Seconds | None = None, n: int = 1
    ) -> SemaphoreHold | None:
        """Return the hold of ``n`` permits, all or none; None if they did not become free. See also ``Lock.acquire``.

        Raises:
            BadOption: the semaphore has fewer than ``n`` permits.
        """
        return run_sync(self._acquire, self._wait(blocking, timeout), n)

    async def aacquire(
        self, blocking: bool = True, timeout: Seconds | None = None, n: int = 1
    ) -> SemaphoreHold | None:
        """``acquire`` for asyncio; waiting occupies no thread."""
        return await self._acquire(ASYNC, self._wait(blocking, timeout), n)

    def release(self, n: int = 1) -> None:
        """Release ``n`` permits: this thread's (or task's), then others'; the latest first, those of ``with`` last.

        Raises:
            NotHeld: this process holds fewer than ``n``; nothing has been changed.
            LeaseLost: one was lost before; the others are released.
            DatabaseUnavailable: they will expire.
        """
        PermitLease.release_together(self._take_leases(n))

    async def arelease(self, n: int = 1) -> None:
        """``release`` for asyncio."""
        await in_thread(PermitLease.release_together, self._take_leases(n))

    @property
    def value(self) -> int:
        """The number of permits. Raises DatabaseUnavailable."""
        return self._count(Q(in_service=True))

    async def avalue(self) -> int:
        """``value`` for asyncio; a method, not a property."""
        return await in_thread(lambda: self.value)

    def available(self) -> int:
        """Return the number of free permits. Raises DatabaseUnavailable."""
        return self._count(Q(in_service=True, busy_before__lte=DbNow()))

    aavailable = for_asyncio(available)

    def locked(self) -> bool:
        """Whether no permit is free. Raises DatabaseUnavailable."""
        return not self.available()

    alocked = for_asyncio(locked)

    def resize(self, n: int) -> int:
        """Set the number of permits, 0 to 10,000; return how many beyond ``n`` are held now.

        The number overrides ``value`` permanently. New permits serve waiters at once. When the number decreases, free
        permits go first, held ones when they are released.

        Raises:
            RowLocked: a permit is locked by ``guard``; nothing has been changed.
            DatabaseUnavailable: the outcome is unknown.
        """
        return resize(self, options.whole("n", n, least=0, most=MAX_PERMITS))

    aresize = for_asyncio(resize)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        hold: SemaphoreHold | None = None
        try:
            hold = self._innermost()
            super().__exit__(kind, *rest)
        except BaseException:  # from a signal handler, for example: nothing else would release it
            hold = hold or self._innermost()
            if hold is not None:
                self._has_ended(hold)
                hold._stop_renewing()
            raise

    def _enter_result(self, hold: SemaphoreHold) -> SemaphoreHold:
        hold.is_of_block = True
        self._blocks.append(hold)
        return hold

    def _exit_target(self) -> Any:
        while (hold := self._innermost()) is not None:
            if self._has_ended(hold):
                return hold
        return self  # no open block: release any permit, as ``threading`` does

    def _has_ended(self, hold: SemaphoreHold) -> bool:
        """Note the end of the block of ``hold``; False: another thread has ended it."""
        try:
            self._blocks.remove(hold)
        except ValueError:
            return False
        return True

    def _innermost(self) -> SemaphoreHold | None:
        """Return the hold of the caller's innermost block, or else of the innermost of any thread."""
        latest_first = self._blocks[::-1]
        return next(filter(is_of_caller, latest_first), latest_first[0] if latest_first else None)

    async def _obtain(self, mode: Mode, wait: float, n: int = 1) -> SemaphoreHold:
        hold = SemaphoreHold(self.key, self._on_lost)
        request = self._request(wait, hold, options.whole("n", n, least=1, most=MAX_PERMITS_AT_ONCE))
        return self._take(hold, await acquire(mode, self, request))

    def _take(self, hold: SemaphoreHold, leases: list[PermitLease]) -> SemaphoreHold:
        try:
            # One order for all, in which ``guard`` locks the rows.
            hold.leases = sorted(leases, key=lambda lease: str(lease.pk))
            for lost in holds.superseded(hold):  # revoked by an operator and granted to this caller
                lost._lose(verbs.TAKEN)
            holds.add(hold)
            delivered(leases)  # last: until then the keeper lets leases of an interrupted caller expire
        except BaseException:
            holds.remove(hold)
            raise
        return hold

    def _take_leases(self, n: int) -> list[PermitLease]:
        n = options.whole("n", n, least=1, most=MAX_PERMITS_AT_ONCE)
        leases = holds.take(self.key, n)
        if isinstance(leases, int):
            raise NotHeld(f"cannot release {n}: this process holds {leases} of {self!r}")
        return leases

    # ``waiting.lease.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        grants = super().claim_free(connection, request)
        if grants is None and not request.timeout:
            self._refuse_too_many(connection, request)
        return grants

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Raise BadOption for more permits than exist: the request would wait forever and block all others."""
        super().refuse_impossible(connection, request)
        self._refuse_too_many(connection, request)

    def _refuse_too_many(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        if request.count == 1:  # waits even for a semaphore of 0 permits, which may be resized
            return
        count = retrying(connection, self._rows(connection).filter(in_service=True).count)
        if count < request.count:
            raise BadOption("n", request.count, f"at most {count}, the permits of {self!r}")

    def _holders_text(self) -> str:
        return f": it has {self.value} permits"

    def _count(self, which: Q) -> int:
        connection = self._connection
        rows = self._rows(connection).aggregate
        counts = retrying(connection, lambda: rows(all=Count("pk"), matching=Count("pk", filter=which)))
        return int(counts["matching"]) if counts["all"] else self.permits

    def _idle_seconds(self, connection: BaseDatabaseWrapper) -> float | None:
        totals = self._rows(connection).aggregate(
            left=MicrosUntil(Max("busy_before")), value=Count("pk", filter=Q(in_service=True))
        )
        if totals["left"] is None:
            return None
        if totals["value"] != self.permits:
            warn_once(
                f"{self!r} has {totals['value']} permits in the database; value={self.permits} is ignored, use resize()"
            )
        return -float(totals["left"]) / 1_000_000

    def _new_rows(self) -> list[AbstractPermit]:
        # 0 permits need a row out of service: a name without rows counts as new.
        return [self._new_row(number, in_service=number < self.permits) for number in range(self.permits or 1)]
