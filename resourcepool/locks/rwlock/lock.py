"""A read-write lock for all processes on all hosts.

A reader holds one permit of the name, a writer all of them; after a crash they expire. A waiting writer is served
before waiting readers and keeps the permits that become free, so that new readers find none.
"""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from django.db import connections

from resourcepool.database.retry import retrying
from resourcepool.database.rows import ensure_row
from resourcepool.database.timeouts import statement_timeout
from resourcepool.exceptions import AcquireTimeout, UpgradeConflict
from resourcepool.leases import verbs
from resourcepool.leases.terms import Terms
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.models import RWLockPermit
from resourcepool.locks.registry import current_owner, new_holder
from resourcepool.locks.rwlock.permits import UPGRADE_PRIORITY, RWPermits
from resourcepool.locks.rwlock.read_write import ReadLock, WriteLock
from resourcepool.options import Seconds
from resourcepool.threads.sync_async import ASYNC, Mode, run_sync
from resourcepool.waiting.lease import delivered, release_quietly


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

    def read(self) -> "ReadLock":
        """Return the lock for reading."""
        return ReadLock(self)

    def write(self) -> "WriteLock":
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
        hold, wait = self.read()._require_hold("upgrade"), self._wait(blocking, timeout)
        if hold.is_writing:
            return hold
        leases: list[Any] = []
        try:
            try:
                leases = await self.acquire_all(mode, hold, 0.0, UPGRADE_PRIORITY)
            except AcquireTimeout:
                if not wait:
                    raise
                terms = Terms(self._ttl, new_holder(current_owner()), holder_is_unique=True)
                async with upgrade_intent(mode, self.name, self.using, terms):
                    leases = await self.acquire_all(mode, hold, wait, UPGRADE_PRIORITY)
            # Renewed to prove that it was held all the time: otherwise there may have been another writer. If an
            # operator revoked the reader's permit, this reader's own ticket may have got it back.
            await mode.call(hold.leases[0].renew)
            hold.leases = [*hold.leases, *leases]
            hold.is_writing = hold.is_upgraded = True
            delivered(leases)
            return hold  # noqa: TRY300 (an interruption here must be caught)
        except AcquireTimeout:
            hold.ensure_held()
            return None
        except BaseException:  # even if all were granted
            hold._undo_upgrade(leases)
            if leases:
                await mode.call(release_quietly, leases)
            raise


@contextlib.asynccontextmanager
async def upgrade_intent(mode: Mode, name: str, using: str, terms: Terms) -> AsyncIterator[None]:
    """Hold the upgrade intent, which only one reader can. Raises UpgradeConflict if another reader holds it."""
    lease = await mode.call(_declare, name, using, terms, undo=LockLease._release_quietly)
    try:
        yield
    finally:
        await mode.call(lease._release_quietly)


def _declare(name: str, using: str, terms: Terms) -> LockLease:
    connection, key = connections[using], RWLockPermit.intent_of(name)
    with statement_timeout():
        grant = verbs.claim(connection, RWLockPermit, key, terms)
        if grant is None and retrying(connection, partial(ensure_row, RWLockPermit, using, key, name="")):
            grant = verbs.claim(connection, RWLockPermit, key, terms)
    if grant is None:
        raise UpgradeConflict(
            f"another reader of {name!r} already waits to upgrade, and would wait for this one: release it, then"
            " acquire write()"
        )
    lease = LockLease(RWLockPermit, using, grant, terms)
    lease._is_delivered = True
    return lease
