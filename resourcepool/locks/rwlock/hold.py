"""What one caller holds of a read-write lock."""

from collections.abc import Sequence

from resourcepool.async_threads import in_thread
from resourcepool.exceptions import LeaseLost
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.permits import PermitLease


class RWHold(Hold):
    """One permit, to read, or all of them, to write; see ``Hold``.

    ``fence`` of one who writes is higher than that of everybody before, readers and writers.

    Attributes:
        is_writing: whether it has all permits.
        count: how often its holder has taken it, to read or to write, and not released it yet.
        writes: how often of these to write.
        is_upgraded: it has all permits because of ``upgrade``, whatever was released since.
    """

    leases: Sequence[PermitLease] = ()
    is_writing = False
    is_upgraded = False
    writes = 0
    _broken: LeaseLost | None = None

    @property
    def fence(self) -> int:
        """The highest fence of its rows: with every grant one of them went above all that were granted before."""
        return max(lease.fence for lease in self.leases)

    @property
    def remaining(self) -> float:
        """Seconds for which it can be relied on without another renewal; 0 when it is not held."""
        return 0.0 if self._broken is not None else super().remaining

    def ensure_held(self) -> None:
        """Return if this process may still rely on it. No I/O. Raises LeaseLost or LeaseReleased."""
        if self._broken is not None:
            raise self._broken.again()
        super().ensure_held()

    def note_loss(self, lease: LockLease) -> None:
        """Note the loss of one row: then all is lost."""
        self._broken = self._broken or lease._state.lost
        super().note_loss(lease)

    def all_but_one(self) -> list[PermitLease]:
        """Keep the row with the highest fence, to read; return the others."""
        kept = max(self.leases, key=lambda lease: lease.fence)
        others = [lease for lease in self.leases if lease is not kept]
        self.leases, self.is_writing, self.is_upgraded = [kept], False, False
        return others

    def give_up(self, leases: Sequence[PermitLease]) -> None:
        """Go on without these rows, which were to make a writer of the reader."""
        self.leases = [lease for lease in self.leases if lease not in leases]
        self.is_writing = self.is_upgraded = False

    def give_back(self, leases: Sequence[PermitLease]) -> None:
        """Release these rows. Raises LeaseLost if it was lost, now or before."""
        if not leases:
            return
        try:
            PermitLease.give_back_together(leases)
        except LeaseLost as error:
            self._broken = self._broken or error
        if self._broken is not None:
            raise self._broken.again()

    async def agive_back(self, leases: Sequence[PermitLease]) -> None:
        """``give_back`` for asyncio."""
        if leases:  # otherwise nothing has to be sent
            await in_thread(self.give_back, leases)
