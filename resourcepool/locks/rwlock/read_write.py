"""The two sides of a read-write lock, ``read()`` and ``write()``, and what a caller holds of it."""

from collections.abc import Sequence
from typing import Any, ClassVar

from resourcepool.exceptions import LeaseLost, UpgradeConflict
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.lockable import Reentrant
from resourcepool.locks.permits import PermitLease
from resourcepool.locks.registry import Key, current_owner, holds_of
from resourcepool.locks.rwlock.permits import RWPermits
from resourcepool.waiting.sync_async import Mode


class RWHold(Hold):
    """One permit, to read, or all of them, to write; see ``Hold``.

    The ``fence`` of a writer is higher than those of all readers and writers before.

    Attributes:
        is_writing: whether it has all permits.
        writes: how many of its ``count`` acquires were to write.
        is_upgraded: it has all permits because of ``upgrade``, whatever was released since.
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

    def note_loss(self, lease: LockLease) -> None:
        """See ``Hold``: all is lost with one row."""
        self._broken = self._broken or lease._state.lost
        super().note_loss(lease)

    def keep_one_lease(self) -> list[PermitLease]:
        """Keep the lease with the highest fence, to read; return the others."""
        kept = max(self.leases, key=lambda lease: lease.fence)
        others = [lease for lease in self.leases if lease is not kept]
        self.leases, self.is_writing, self.is_upgraded = [kept], False, False
        return others

    def undo_upgrade(self, leases: Sequence[PermitLease]) -> None:
        """Go on as a reader, without these leases, which were to make it the writer."""
        self.leases = [lease for lease in self.leases if lease not in leases]
        self.is_writing = self.is_upgraded = False

    def continue_reading(self, leases: Sequence[PermitLease]) -> None:
        """Release these, all but one, and have the database confirm the one that is kept. Raises LeaseLost."""
        self.release_leases(leases)
        self.leases[0].renew()

    def release_leases(self, leases: Sequence[PermitLease]) -> None:
        """Release these leases. Raises LeaseLost if any of it was lost, now or before."""
        try:
            PermitLease.release_together(leases)
        except LeaseLost as error:
            self._broken = self._broken or error
        if self._broken is not None:
            raise self._broken.again()


class _RWSideLock(Reentrant[RWHold]):
    """A side of a ``RWLock``. After the last release as a writer, a holder that also reads lets other readers in."""

    writes: ClassVar[bool]

    def __init__(self, lock: RWPermits) -> None:
        self.lock, self._timeout = lock, lock._timeout

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.lock.name!r}>"

    @property
    def _named(self) -> RWPermits:
        return self.lock

    def require_hold(self, do: str) -> RWHold:
        """See ``Reentrant``; a writer also reads."""
        hold = super().require_hold(do)
        if self.writes and not hold.is_writing:
            raise self._not_held(do)
        return hold

    def owned(self) -> bool:
        """See ``Reentrant``; a writer also reads."""
        hold = holds_of(current_owner()).get(self.lock.key)
        return hold is not None and hold.is_held and (hold.is_writing or not self.writes)

    def _wait(self, blocking: bool, timeout: object) -> float:
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
                f"{self.lock!r} is read here, so write() would wait for itself: call upgrade()"
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
        release_leases = hold.release_leases
        if hold.count == 1:
            del mine[self.lock.key]  # one step: see ``Lock``
            hold.count = hold.writes = 0
            leases = list(hold.leases)
        else:
            hold.count -= 1
            hold.writes -= self.writes
            if hold.is_writing and not hold.writes and not hold.is_upgraded:
                leases, release_leases = hold.keep_one_lease(), hold.continue_reading
        if leases:  # otherwise nothing has to be sent
            await mode.call(release_leases, leases)


class ReadLock(_RWSideLock):
    """To read, beside other readers and no writer."""

    writes = False


class WriteLock(_RWSideLock):
    """To write, alone."""

    writes = True

    async def _leases(self, mode: Mode, hold: RWHold, wait: float) -> list[Any]:
        return await self.lock.acquire_all(mode, hold, wait, self.lock.priority)
