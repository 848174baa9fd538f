"""``read()`` and ``write()`` of a read-write lock, and the hold of a caller."""

from collections.abc import Sequence
from typing import Any, ClassVar

from resourcepool.db.threads.sync_async import Mode
from resourcepool.exceptions import LeaseLost, UpgradeConflict
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.lockable import Reentrant
from resourcepool.locks.permits import PermitLease
from resourcepool.locks.registry import Key, current_owner, holds_of
from resourcepool.locks.rwlock.permits import RWPermits
from resourcepool.options import Seconds


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
        """See ``Hold``."""
        return 0.0 if self._broken is not None else super().remaining

    def ensure_held(self) -> None:
        """See ``Hold``."""
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

    def _undo_upgrade(self, leases: Sequence[PermitLease]) -> None:
        """Stay a reader, without these leases of a failed upgrade."""
        self.leases = [lease for lease in self.leases if lease not in leases]
        self.is_writing = self.is_upgraded = False

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
        hold = holds_of(current_owner()).get(self.lock.key)
        return hold is not None and hold.is_held and (hold.is_writing or not self.writes)

    def _wait(self, blocking: bool, timeout: Seconds | None) -> float:
        return self.lock._wait(blocking, timeout)

    def _new_hold(self) -> RWHold:
        hold = RWHold(self.lock.name, self.lock._on_lost)
        hold.is_writing, hold.writes = self.writes, int(self.writes)
        return hold

    def _count_again(self, mine: dict[Key, RWHold], key: Key) -> RWHold | None:
        hold = mine.get(key)
        if hold is not None and self.writes and not hold.is_writing:
            hold.ensure_held()
            raise UpgradeConflict(
                f"{self.lock!r} is held for reading here, so write() would wait for itself: call upgrade()"
            )
        if (hold := super()._count_again(mine, key)) is not None:
            hold.writes += self.writes
        return hold

    async def _release(self, mode: Mode) -> None:
        mine = holds_of(current_owner())
        hold: RWHold | None = mine.get(self.lock.key)
        if hold is None or not (hold.writes if self.writes else hold.count - hold.writes):
            raise self._not_held("release it")
        leases: Sequence[PermitLease] = ()
        release_leases = hold._release_leases
        if hold.count == 1:
            del mine[self.lock.key]  # atomic: see ``Lock``
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
