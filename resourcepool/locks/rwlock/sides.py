"""The two ways to hold a read-write lock: as one of those who read, or as the one who writes."""

from typing import Any, ClassVar

from resourcepool.exceptions import UpgradeConflict
from resourcepool.locks.owned import Owned
from resourcepool.locks.owners import Key, current, held_by
from resourcepool.locks.rwlock.hold import RWHold
from resourcepool.locks.rwlock.rows import RWPermits
from resourcepool.locks.ways import AWAITING, BLOCKING, at_once


class _Side(Owned[RWHold]):
    """One of the two ways to hold a ``RWLock``."""

    writes: ClassVar[bool]

    def __init__(self, lock: RWPermits) -> None:
        self.lock, self._timeout = lock, lock._timeout

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.lock.name!r}>"

    def release(self) -> None:
        """Release it once; what is left may be less than there was: a writer that still reads lets readers in.

        Raises:
            NotHeld: this thread (or task) has not acquired it so.
            LeaseLost: it was lost before; nothing has been changed for the new holders.
        """
        hold, leases = self._given_up()
        hold.give_back(leases)

    async def arelease(self) -> None:
        """``release`` for asyncio."""
        hold, leases = self._given_up()
        await hold.agive_back(leases)

    @property
    def _named(self) -> RWPermits:
        return self.lock

    def held_to(self, do: str) -> RWHold:
        """See ``Owned``; who writes reads, too."""
        hold = super().held_to(do)
        if self.writes and not hold.is_writing:
            raise self._not_held(do)
        return hold

    def owned(self) -> bool:
        """Whether this thread (or task) holds it so, and may rely on that; who writes reads, too. No I/O."""
        hold = held_by(current()).get(self.lock.key)
        return hold is not None and hold.is_held and (hold.is_writing or not self.writes)

    def _wait(self, blocking: bool, timeout: object) -> float:
        return self.lock._wait(blocking, timeout)

    def _new_hold(self) -> RWHold:
        hold = RWHold(self.lock.name, self.lock._on_lost)
        hold.is_writing, hold.writes = self.writes, int(self.writes)
        return hold

    def _again(self, mine: dict[Key, RWHold], key: Key) -> RWHold | None:
        hold = mine.get(key)
        if hold is not None and self.writes and not hold.is_writing:
            hold.ensure_held()
            raise UpgradeConflict(
                f"{self.lock!r} is read here, so write() would wait for itself: call upgrade()"
            )
        if (hold := super()._again(mine, key)) is not None:
            hold.writes += self.writes
        return hold

    def _given_up(self) -> tuple[RWHold, list[Any]]:
        """Note one release; return the hold, and which of its leases to give back."""
        mine = held_by(current())
        hold: RWHold | None = mine.get(self.lock.key)
        if hold is None or not (hold.writes if self.writes else hold.count - hold.writes):
            raise self._not_held("release it")
        if hold.count == 1:
            del mine[self.lock.key]  # one step: whoever is interrupted before it can release it again
            hold.count = hold.writes = 0
            return hold, list(hold.leases)
        hold.count -= 1
        hold.writes -= self.writes
        still_writes = hold.writes or hold.is_upgraded or not hold.is_writing
        return hold, [] if still_writes else hold.all_but_one()


class Reading(_Side):
    """To read: beside others who read, up to the number of readers, and beside nobody who writes."""

    writes = False


class Writing(_Side):
    """To write: beside nobody."""

    writes = True

    def _leases(self, hold: RWHold, wait: float) -> list[Any]:
        return at_once(self.lock.take_every, BLOCKING, hold, wait, self.lock.priority)

    async def _aleases(self, hold: RWHold, wait: float) -> list[Any]:
        return await self.lock.take_every(AWAITING, hold, wait, self.lock.priority)
