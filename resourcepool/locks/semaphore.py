"""A semaphore for all processes on all hosts, with the methods of ``threading.BoundedSemaphore``.

Each permit is a leased row, so the permits of a crashed process become free again.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import ClassVar

from django.db.models import Count, Q

from resourcepool import options
from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.db.sync_async import ASYNC, Mode, for_asyncio, in_thread, run_sync
from resourcepool.exceptions import NotHeld
from resourcepool.locks.base import TTL
from resourcepool.locks.lockable import Hold, Lockable, seconds_to_wait
from resourcepool.locks.models import AbstractPermit, SemaphorePermit
from resourcepool.locks.permits import MAX_PERMITS, PermitLease, Permits, resize
from resourcepool.locks.registry import holds, is_of_caller
from resourcepool.options import Seconds
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.source import delivered

MAX_PERMITS_AT_ONCE = 1_000


class SemaphoreLease(PermitLease):
    """The lease of one permit; any thread of the process can release it."""

    is_of_owner = False


class SemaphoreHold(Hold):
    """The permits of one ``acquire``; ``is_of_block``: a ``with`` block releases them."""

    leases: Sequence[PermitLease] = ()
    is_of_block = False

    def __init__(self, lock: "Semaphore") -> None:
        super().__init__(lock, lock.name, lock._on_lost)
        self.key = lock.key

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

    async def arelease(self) -> None:
        """``release`` for asyncio."""
        await in_thread(self.release)


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
    option = "value"
    hint = ", use resize()"

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
        return run_sync(self._acquire, seconds_to_wait(self._timeout, blocking, timeout), n)

    async def aacquire(
        self, blocking: bool = True, timeout: Seconds | None = None, n: int = 1
    ) -> SemaphoreHold | None:
        """``acquire`` for asyncio; waiting occupies no thread."""
        return await self._acquire(ASYNC, seconds_to_wait(self._timeout, blocking, timeout), n)

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

    def __enter__(self) -> SemaphoreHold:
        return self._begin_block(super().__enter__())

    async def __aenter__(self) -> SemaphoreHold:
        return self._begin_block(await super().__aenter__())

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if (hold := self._end_block()) is not None:
            hold.__exit__(kind, *rest)
        else:  # release any permit, as ``threading`` does
            super().__exit__(kind, *rest)

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if (hold := self._end_block()) is not None:
            await hold.__aexit__(kind, *rest)
        else:
            await super().__aexit__(kind, *rest)

    def _begin_block(self, hold: SemaphoreHold) -> SemaphoreHold:
        hold.is_of_block = True
        self._blocks.append(hold)
        return hold

    def _end_block(self) -> SemaphoreHold | None:
        """Return the hold of the caller's innermost block, or else of any thread's; None: no block is open."""
        latest_first = self._blocks[::-1]
        for hold in sorted(latest_first, key=lambda hold: not is_of_caller(hold.holder)):
            with contextlib.suppress(ValueError):  # another thread has ended it
                self._blocks.remove(hold)
                return hold
        return None

    async def _obtain(self, mode: Mode, wait: float, n: int = 1) -> SemaphoreHold:
        hold = SemaphoreHold(self)
        request = self._request(wait, hold._when_lost, options.whole("n", n, least=1, most=MAX_PERMITS_AT_ONCE))
        return self._take(hold, await acquire(mode, self, request))

    def _take(self, hold: SemaphoreHold, leases: list[PermitLease]) -> SemaphoreHold:
        # One order for all, in which ``guard`` locks the rows.
        hold.leases = sorted(delivered(leases), key=lambda lease: str(lease.pk))
        holds.add(hold)  # last: otherwise nothing refers to it, and it expires
        return hold

    def _take_leases(self, n: int) -> list[PermitLease]:
        n = options.whole("n", n, least=1, most=MAX_PERMITS_AT_ONCE)
        leases = holds.take(self.key, n)
        if isinstance(leases, int):
            raise NotHeld(f"cannot release {n}: this process holds {leases} of {self!r}")
        return leases

    def _holders_text(self) -> str:
        return f": it has {self.value} permits"

    def _count(self, which: Q) -> int:
        connection = self._connection
        rows = self._rows(connection).aggregate
        counts = retrying(connection, lambda: rows(all=Count("pk"), matching=Count("pk", filter=which)))
        return int(counts["matching"]) if counts["all"] else self.permits

    def _new_rows(self) -> list[AbstractPermit]:
        # 0 permits need a row out of service: a name without rows counts as new.
        return [self._new_row(number, in_service=number < self.permits) for number in range(self.permits or 1)]
