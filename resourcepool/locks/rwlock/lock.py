"""A lock that many read under at once, or one writes under: known by its name, in all processes on all hosts.

Document 004 (R4.4). A reader holds one of the permits of the name, a writer all of them: so a permit that both need is
what keeps them apart, and a dead holder's expire. Who waits for all keeps the permits that come free, so new readers
find none; that and its priority is how writers are preferred.
"""

from typing import Any

from resourcepool.exceptions import AcquireTimeout
from resourcepool.leases.terms import Terms
from resourcepool.locks.hold import Hold
from resourcepool.locks.owners import current, holder_of
from resourcepool.locks.rwlock.hold import RWHold
from resourcepool.locks.rwlock.intent import intent
from resourcepool.locks.rwlock.rows import UPGRADING, RWPermits
from resourcepool.locks.rwlock.sides import Reading, Writing
from resourcepool.locks.ways import AWAITING, BLOCKING, Way, at_once
from resourcepool.waiting.lease import abandon, delivered


class RWLock(RWPermits):
    """A read-write lock known by its name; see ``Named`` for the other options.

        catalogue = RWLock("catalogue")
        with catalogue.read():
            ...
        with catalogue.write() as held:
            ...
            catalogue.downgrade()
            ...

    A thread, or a task of asyncio, that has it may take it again: to read or to write while it writes, to read while
    it reads. To write while it reads it calls ``upgrade``.

    Not promised: that a holder which was stopped for longer than ``ttl``, and does not look (``held.ensure_held``,
    ``held.guard``), stops in time; an order between readers; a greater fence for a reader.

    Args:
        readers: how many may read at once, 1 to 100, if nobody has used the name yet; otherwise as many as it was made
            for. A writer takes so many rows: a few more than are needed at once are enough.
        fair: writers are served in the order of arrival with readers, not before them.
    """

    def read(self) -> "Reading":
        """Return what to acquire, and release, to read."""
        return Reading(self)

    def write(self) -> "Writing":
        """Return what to acquire, and release, to write."""
        return Writing(self)

    def downgrade(self) -> Hold:
        """Go on as a reader: whoever writes lets other readers in, and no other writer before that.

        What was acquired is released as often as before.

        Raises:
            NotHeld: this thread (or task) does not write.
            LeaseLost: it was lost before; all of it is.
            DatabaseUnavailable: it reads from now on; others get the permits that were not released when they expire.
        """
        hold = self.write().held_to("downgrade")
        hold.give_back(hold.all_but_one())
        return hold

    async def adowngrade(self) -> Hold:
        """``downgrade`` for asyncio."""
        hold = self.write().held_to("downgrade")
        await hold.agive_back(hold.all_but_one())
        return hold

    def upgrade(self, blocking: bool = True, timeout: object = None) -> Hold | None:
        """Go on as the writer, before all who wait, as soon as no other reads; None if that was not in time.

        Nobody writes in between. Afterwards ``downgrade`` may follow, or it is released as a reader.

        Raises:
            NotHeld: this thread (or task) does not hold it.
            UpgradeConflict: another reader waits already to write: release, for it waits for you.
            LeaseLost: what the reader had is lost.
            BadOption, ClaimInTransaction, DatabaseUnavailable: as ``acquire``.
        """
        return at_once(self._upgraded, BLOCKING, blocking, timeout)

    async def aupgrade(self, blocking: bool = True, timeout: object = None) -> Hold | None:
        """``upgrade`` for asyncio."""
        return await self._upgraded(AWAITING, blocking, timeout)

    async def _upgraded(self, way: Way, blocking: bool, timeout: object) -> Hold | None:
        hold, wait = self.read().held_to("upgrade"), self._wait(blocking, timeout)
        if hold.is_writing:
            return hold
        leases: list[Any] = []
        try:
            try:
                leases = await self.take_every(way, hold, 0.0, UPGRADING)
            except AcquireTimeout:
                if not wait:
                    raise
                async with intent(way, self.name, self.using, self._terms()):
                    leases = await self.take_every(way, hold, wait, UPGRADING)
            return self._widened(hold, leases)
        except AcquireTimeout:
            return None
        except BaseException:  # also one that comes when all were granted already
            hold.give_up(leases)
            if leases:
                await way.call(abandon, leases)
            raise

    def _terms(self) -> Terms:
        return Terms(self._ttl, holder_of(current()), holder_is_unique=True)

    def _widened(self, hold: RWHold, leases: list[Any]) -> Hold:
        hold.ensure_held()  # all the time: otherwise somebody may have written meanwhile
        hold.leases = [*hold.leases, *leases]
        hold.is_writing = hold.is_upgraded = True
        delivered(leases)
        return hold
