"""A read-write lock for all processes on all hosts.

A reader holds one permit of the name, a writer all of them; after a crash they expire. A waiting writer is served
before waiting readers and keeps the permits that become free, so that new readers find none.
"""

from functools import partial

from resourcepool.db.retry import retrying
from resourcepool.db.rows import ensure_row
from resourcepool.db.sync_async import ASYNC, Mode, run_sync
from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import AcquireTimeout, UpgradeConflict
from resourcepool.leases import verbs
from resourcepool.leases.terms import Terms
from resourcepool.locks.lockable import Hold, LockLease, seconds_to_wait
from resourcepool.locks.models import RWLockPermit
from resourcepool.locks.permits import PermitLease
from resourcepool.locks.registry import new_holder
from resourcepool.locks.rwlock_sides import UPGRADE_PRIORITY, ReadLock, RWPermits, WriteLock
from resourcepool.options import Seconds
from resourcepool.waiting.source import delivered, release_quietly


class RWLock(RWPermits):
    """A read-write lock known by its name; see ``Named`` for the other options and ``Hold`` for its limits::

        catalogue = RWLock("catalogue")
        with catalogue.read():
            ...
        with catalogue.write() as held:
            ...
            catalogue.downgrade()
            ...

    A writer (thread or asyncio task) may acquire it again to read or write, a reader to read; to write, it calls
    ``upgrade``.

    Not promised: an order between readers; a higher fence for a reader.

    Args:
        readers: maximum number of concurrent readers, 1 to 100; fixed at the first use of the name. A writer acquires
            as many rows, so choose few more than needed.
        fair: serve writers and readers in order of arrival, instead of writers first.
    """

    def read(self) -> ReadLock:
        """Return the lock for reading."""
        return ReadLock(self)

    def write(self) -> WriteLock:
        """Return the lock for writing."""
        return WriteLock(self)

    def downgrade(self) -> Hold:
        """Turn from writer to reader, with no other writer in between. The number of releases stays the same.

        Raises:
            NotHeld: this thread (or task) is not a writer.
            LeaseLost: it was lost before.
            DatabaseUnavailable: it is a reader now; permits that were not released will expire.
        """
        return run_sync(self._run_downgrade)

    async def adowngrade(self) -> Hold:
        """``downgrade`` for asyncio."""
        return await self._run_downgrade(ASYNC)

    def upgrade(self, blocking: bool = True, timeout: Seconds | None = None) -> Hold | None:
        """Turn from reader to writer, before all waiters, once there is no other reader; None: not in time.

        There is no other writer in between. Afterwards call ``downgrade``, or release it as a reader. Arguments and
        further errors: see ``acquire``.

        Raises:
            NotHeld: this thread (or task) does not hold it.
            UpgradeConflict: another reader already waits to upgrade, and waits for this one: release it.
            LeaseLost: the reader's permit was lost.
            DatabaseUnavailable: it is still a reader.
        """
        return run_sync(self._run_upgrade, blocking, timeout)

    async def aupgrade(self, blocking: bool = True, timeout: Seconds | None = None) -> Hold | None:
        """``upgrade`` for asyncio."""
        return await self._run_upgrade(ASYNC, blocking, timeout)

    async def _run_downgrade(self, mode: Mode) -> Hold:
        hold = self.write()._require_hold("downgrade")
        if others := hold._keep_one_lease():
            await mode.call(hold._continue_reading, others)
        return hold

    async def _run_upgrade(self, mode: Mode, blocking: bool, timeout: Seconds | None) -> Hold | None:
        hold, wait = self.read()._require_hold("upgrade"), seconds_to_wait(self._timeout, blocking, timeout)
        if hold.is_writing:
            return hold
        mine, leases = hold.leases, list[PermitLease]()
        try:
            try:
                leases = await self.acquire_all(mode, hold, 0.0, UPGRADE_PRIORITY)
            except AcquireTimeout:
                if not wait:
                    raise
                intent = await mode.call(self._declare_intent, undo=LockLease._release_quietly)
                try:
                    leases = await self.acquire_all(mode, hold, wait, UPGRADE_PRIORITY)
                finally:
                    await mode.call(intent._release_quietly)
            # Renewed to prove that it was held all the time: otherwise there may have been another writer. If an
            # operator revoked the reader's permit, this reader's own ticket may have got it back.
            await mode.call(mine[0].renew)
            hold.leases, hold.is_writing, hold.is_upgraded = [*mine, *delivered(leases)], True, True
        except AcquireTimeout:
            hold.ensure_held()
            return None
        except BaseException:
            hold.leases, hold.is_writing, hold.is_upgraded = mine, False, False
            await mode.call(release_quietly, leases)
            raise
        return hold

    def _declare_intent(self) -> LockLease:
        """Lease the intent to upgrade, which one reader at a time can. Raises UpgradeConflict."""
        connection, key = self._connection, RWLockPermit.intent_of(self.name)
        terms = Terms(self._ttl, new_holder(), holder_is_unique=True)
        with statement_timeout():
            grant = verbs.claim(connection, RWLockPermit, key, terms)
            if grant is None and retrying(
                connection, partial(ensure_row, RWLockPermit, self.using, key, name="")
            ):
                grant = verbs.claim(connection, RWLockPermit, key, terms)
        if grant is None:
            raise UpgradeConflict(
                f"another reader of {self.name!r} already waits to upgrade, and would wait for this one: release it,"
                " then acquire write()"
            )
        (intent,) = delivered([LockLease(RWLockPermit, self.using, grant, terms)])
        return intent
