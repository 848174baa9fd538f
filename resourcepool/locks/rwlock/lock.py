"""A read-write lock for all processes on all hosts.

Document 004 (R4.4). A reader holds one permit of the name, a writer all of them; a dead holder's expire. A waiting
writer comes before readers in line, and keeps the permits that come free, so that new readers find none.
"""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.exceptions import AcquireTimeout, UpgradeConflict
from resourcepool.leases import verbs
from resourcepool.leases.terms import Terms
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.models import RWLockPermit
from resourcepool.locks.registry import current_owner, new_holder
from resourcepool.locks.rwlock.permits import UPGRADE_PRIORITY, RWPermits
from resourcepool.locks.rwlock.read_write import ReadLock, WriteLock
from resourcepool.waiting.lease import delivered, release_quietly
from resourcepool.waiting.sync_async import ASYNC, Mode, run_sync


class RWLock(RWPermits):
    """A read-write lock known by its name; see ``Named`` for the other options, ``Hold`` for what is not promised.

        catalogue = RWLock("catalogue")
        with catalogue.read():
            ...
        with catalogue.write() as held:
            ...
            catalogue.downgrade()
            ...

    A thread, or a task of asyncio, that writes may acquire it again to read or write; one that reads, to read. To write
    it calls ``upgrade``.

    Not promised either: an order between readers; a higher fence for a reader.

    Args:
        readers: how many may read at once, 1 to 100; counts only when the name is first used. A writer takes as many
            rows, so choose few more than are needed.
        fair: serve writers and readers in the order of arrival, not writers first.
    """

    def read(self) -> "ReadLock":
        """Return the lock to read under."""
        return ReadLock(self)

    def write(self) -> "WriteLock":
        """Return the lock to write under."""
        return WriteLock(self)

    def downgrade(self) -> Hold:
        """Go on as a reader: the writer lets other readers in, and no writer in between. Release it as often as before.

        Raises:
            NotHeld: this thread (or task) does not write.
            LeaseLost: all of it was lost before.
            DatabaseUnavailable: it reads from now on; permits that were not released come free when they expire.
        """
        return run_sync(self._run_downgrade)

    async def adowngrade(self) -> Hold:
        """``downgrade`` for asyncio."""
        return await self._run_downgrade(ASYNC)

    def upgrade(self, blocking: bool = True, timeout: object = None) -> Hold | None:
        """Go on as the writer, before all waiters, as soon as no other reads; None: not in time. Else as ``acquire``.

        Nobody writes in between. Then call ``downgrade``, or release it as a reader.

        Raises:
            NotHeld: this thread (or task) does not hold it.
            UpgradeConflict: another reader already waits to write, and waits for you: release.
            LeaseLost: what the reader had is lost.
            DatabaseUnavailable: it reads on.
        """
        return run_sync(self._run_upgrade, blocking, timeout)

    async def aupgrade(self, blocking: bool = True, timeout: object = None) -> Hold | None:
        """``upgrade`` for asyncio."""
        return await self._run_upgrade(ASYNC, blocking, timeout)

    async def _run_downgrade(self, mode: Mode) -> Hold:
        hold = self.write().require_hold("downgrade")
        if others := hold.keep_one_lease():
            await mode.call(hold.continue_reading, others)
        return hold

    async def _run_upgrade(self, mode: Mode, blocking: bool, timeout: object) -> Hold | None:
        hold, wait = self.read().require_hold("upgrade"), self._wait(blocking, timeout)
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
            # Held all the time: otherwise another may have written meanwhile. The database says so, for what an
            # operator takes away goes to the first in line, which is this reader's own ticket.
            await mode.call(hold.leases[0].renew)
            hold.leases = [*hold.leases, *leases]
            hold.is_writing = hold.is_upgraded = True
            delivered(leases)
            return hold  # noqa: TRY300 (an interruption just here is caught, too)
        except AcquireTimeout:
            hold.ensure_held()
            return None
        except BaseException:  # even when all were granted already
            hold.undo_upgrade(leases)
            if leases:
                await mode.call(release_quietly, leases)
            raise


@contextlib.asynccontextmanager
async def upgrade_intent(mode: Mode, name: str, using: str, terms: Terms) -> AsyncIterator[None]:
    """Lease the row that only one reader has, which waits to write. Raises UpgradeConflict if another one has it."""
    lease = await mode.call(_declare, name, using, terms, undo=LockLease.release_quietly)
    try:
        yield
    except BaseException:
        await mode.call(lease.release_quietly)
        raise
    await mode.call(lease.release_or_log)


def _declare(name: str, using: str, terms: Terms) -> LockLease:
    connection, key = connections[using], RWLockPermit.intent_of(name)
    with statement_timeout():
        grant = verbs.claim(connection, RWLockPermit, key, terms)
        if grant is None and retrying(connection, partial(_add, connection, key)):
            grant = verbs.claim(connection, RWLockPermit, key, terms)
    if grant is None:
        raise UpgradeConflict(
            f"another reader of {name!r} waits already to write, and each would wait for the other to release: "
            "release, and take write()"
        )
    lease = LockLease(RWLockPermit, using, grant, terms)
    lease.is_delivered = True
    return lease


def _add(connection: BaseDatabaseWrapper, key: str) -> bool:
    """Add the row if there is none; returns whether there was none."""
    rows = verbs.rows_of(connection, RWLockPermit)
    if rows.filter(pk=key).exists():
        return False
    with contextlib.suppress(IntegrityError), transaction.atomic(using=connection.alias):
        rows.bulk_create([RWLockPermit(key=key, name="")])
    return True
