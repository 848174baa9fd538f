"""The two sides of a read-write lock, ``read()`` and ``write()``, and what a caller holds of it."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db.sync_async import Mode
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseLost, UpgradeConflict
from resourcepool.leases.terms import Request
from resourcepool.locks.base import TTL
from resourcepool.locks.lock import Reentrant
from resourcepool.locks.lockable import Hold, LockLease
from resourcepool.locks.models import AbstractPermit, RWLockPermit
from resourcepool.locks.permits import PermitLease, Permits, TooManyPermits, counted
from resourcepool.locks.registry import current_owner
from resourcepool.options import Seconds
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.source import release_quietly

READERS = 10
MAX_READERS = 100  # a writer acquires and renews as many rows
WRITER_PRIORITY, UPGRADE_PRIORITY = -1, -2  # ticket priorities of writers and of upgrading readers


class RWPermits(Permits):
    """The permits of one name; see ``RWLock`` for the options."""

    model: ClassVar[type[AbstractPermit]] = RWLockPermit
    kind = "read-write lock"
    option = "readers"

    def __init__(
        self,
        name: str,
        *,
        readers: int = READERS,
        fair: bool = False,
        ttl: Seconds = TTL,
        timeout: Seconds | None = None,
        on_lost: Callable[[Hold], object] | None = None,
    ) -> None:
        super().__init__(name, ttl=ttl, timeout=timeout, on_lost=on_lost)
        self.permits = options.whole("readers", readers, least=1, most=MAX_READERS)
        self.priority = 0 if options.flag("fair", fair) else WRITER_PRIORITY

    async def acquire_all(self, mode: Mode, hold: Hold, wait: float, priority: int) -> list[PermitLease]:
        """Acquire all permits that ``hold`` does not have; raises AcquireTimeout, also once ``hold`` is lost.

        Only the database knows their number. Rows are added only while a name has none, so it cannot change while one
        is held.
        """
        until = monotonic() + wait
        # A reader's request for more than there are would wait forever: its own permit is not free.
        if hold.leases:
            await mode.call(lambda: self._count_rows(self._connection))
        while True:
            count = counted.get(self.key, self.permits) - len(hold.leases)
            request = self._request(max(0.0, until - monotonic()), hold._when_lost, count, priority)
            try:
                leases = await acquire(mode, self, request, stop=hold.lost.is_set) if count > 0 else []
            except TooManyPermits:  # ``counted`` was outdated
                continue
            confirmed = await mode.call(self._confirmed, hold, leases, undo=release_quietly)
            if confirmed is not None:
                return confirmed

    def timed_out(self, request: Request, holder: str, error: Exception | None) -> AcquireTimeout:
        return super().timed_out(dataclasses.replace(request, count=1), holder, error)

    def _confirmed(self, hold: Hold, leases: list[PermitLease]) -> list[PermitLease] | None:
        """Return these if they are all that ``hold`` does not have; otherwise release them. Raises LeaseLost."""
        with contextlib.suppress(DatabaseUnavailable):
            if self._count_rows(self._connection) == len(hold.leases) + len(leases):
                return leases
        release_quietly(leases)
        for lease in hold.leases:  # its row may be gone
            lease.renew()
        return None

    def _holders_text(self) -> str:
        holders = [request.holder for request in self.holders(limit=4)]
        return f": held by {', '.join(holders[:3])}{' and others' * (len(holders) > 3)}" if holders else ""


class RWHold(Hold):
    """One permit of a reader, or all permits of a writer; see ``Hold``.

    The ``fence`` of a writer is higher than those of all earlier readers and writers.

    Attributes:
        is_writing: whether it has all permits.
        writes: how many of its ``count`` acquires were for writing.
        is_upgraded: whether it got all permits by ``upgrade``.
    """

    leases: Sequence[PermitLease] = ()
    is_writing = False
    is_upgraded = False
    writes = 0
    _broken: LeaseLost | None = None

    @property
    def fence(self) -> int:
        """The highest fence of its rows."""
        return max(lease.fence for lease in self.leases)

    @property
    def remaining(self) -> float:
        return 0.0 if self._broken is not None else super().remaining

    def ensure_held(self) -> None:
        if self._broken is not None:
            raise self._broken.again()
        super().ensure_held()

    def _note_loss(self, lease: LockLease) -> None:
        """See ``Hold``: the loss of one row loses all."""
        self._broken = self._broken or lease._state.lost
        super()._note_loss(lease)

    def _keep_one_lease(self) -> list[PermitLease]:
        """Keep the lease with the highest fence, for reading; return the others."""
        kept = max(self.leases, key=lambda lease: lease.fence)
        others = [lease for lease in self.leases if lease is not kept]
        self.leases, self.is_writing, self.is_upgraded = [kept], False, False
        return others

    def release(self) -> None:
        """See ``Hold``; its acquires for reading are released first."""
        self._side.release()

    async def arelease(self) -> None:
        """``release`` for asyncio."""
        await self._side.arelease()

    @property
    def _side(self) -> "_RWSideLock":
        return (ReadLock if self.count > self.writes else WriteLock)(self._lock)

    def _continue_reading(self, leases: Sequence[PermitLease]) -> None:
        """Release all leases but one, and confirm that one by a renewal. Raises LeaseLost."""
        self._release_leases(leases)
        self.leases[0].renew()

    def _release_leases(self, leases: Sequence[PermitLease]) -> None:
        """Release these leases. Raises LeaseLost if any was lost, now or before."""
        try:
            PermitLease.release_together(leases)
        except LeaseLost as error:
            self._broken = self._broken or error
        if self._broken is not None:
            raise self._broken.again()


class _RWSideLock(Reentrant[RWHold]):
    """The base of both. After its last release as writer, a holder that also reads becomes a reader."""

    writes: ClassVar[bool]

    def __init__(self, lock: RWPermits) -> None:
        self.lock, self._timeout = lock, lock._timeout

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.lock.name!r}>"

    @property
    def _named(self) -> RWPermits:
        return self.lock

    def _require_hold(self, do: str) -> RWHold:
        """See ``Reentrant``; a writer also reads."""
        hold = super()._require_hold(do)
        if self.writes and not hold.is_writing:
            raise self._not_held(do)
        return hold

    def owned(self) -> bool:
        """See ``Reentrant``; a writer also reads."""
        hold = self._hold()
        return hold is not None and hold.is_held and (hold.is_writing or not self.writes)

    def _new_hold(self) -> RWHold:
        hold = RWHold(self.lock, self.lock.name, self.lock._on_lost)
        hold.is_writing, hold.writes = self.writes, int(self.writes)
        return hold

    def _count_again(self, hold: RWHold) -> None:
        if self.writes and not hold.is_writing:
            hold.ensure_held()
            raise UpgradeConflict(
                f"{self.lock!r} is held for reading here, so write() would wait for itself: call upgrade()"
            )
        super()._count_again(hold)
        hold.writes += self.writes

    async def _release(self, mode: Mode) -> None:
        hold = self._hold()
        if hold is None or not (hold.writes if self.writes else hold.count - hold.writes):
            raise self._not_held("release it")
        leases: Sequence[PermitLease] = ()
        release_leases = hold._release_leases
        if hold.count == 1:
            del current_owner().holds[self.lock.key]
            hold.count = hold.writes = 0
            leases = list(hold.leases)
        else:
            hold.count -= 1
            hold.writes -= self.writes
            if hold.is_writing and not hold.writes and not hold.is_upgraded:
                leases, release_leases = hold._keep_one_lease(), hold._continue_reading
        if leases:
            await mode.call(release_leases, leases)


class ReadLock(_RWSideLock):
    """Acquires for reading, together with other readers."""

    writes = False


class WriteLock(_RWSideLock):
    """Acquires for writing, exclusively."""

    writes = True

    async def _leases(self, mode: Mode, hold: RWHold, wait: float) -> list[Any]:
        return await self.lock.acquire_all(mode, hold, wait, self.lock.priority)
