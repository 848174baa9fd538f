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

from resourcepool.database.answers import answer_timeout
from resourcepool.database.retry import retrying
from resourcepool.exceptions import AcquireTimeout, UpgradeConflict
from resourcepool.leases import verbs
from resourcepool.leases.terms import Terms
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.models import RWLockPermit
from resourcepool.locks.registry import current, holder_of
from resourcepool.locks.rwlock.permits import UPGRADING, RWPermits
from resourcepool.locks.rwlock.sides import Reading, Writing
from resourcepool.waiting.lease import abandon, delivered
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

    def read(self) -> "Reading":
        """Return the lock to read under."""
        return Reading(self)

    def write(self) -> "Writing":
        """Return the lock to write under."""
        return Writing(self)

    def downgrade(self) -> Hold:
        """Go on as a reader: the writer lets other readers in, and no writer in between. Release it as often as before.

        Raises:
            NotHeld: this thread (or task) does not write.
            LeaseLost: all of it was lost before.
            DatabaseUnavailable: it reads from now on; permits that were not released come free when they expire.
        """
        return run_sync(self._downgraded)

    async def adowngrade(self) -> Hold:
        """``downgrade`` for asyncio."""
        return await self._downgraded(ASYNC)

    def upgrade(self, blocking: bool = True, timeout: object = None) -> Hold | None:
        """Go on as the writer, before all waiters, as soon as no other reads; None: not in time. Else as ``acquire``.

        Nobody writes in between. Then call ``downgrade``, or release it as a reader.

        Raises:
            NotHeld: this thread (or task) does not hold it.
            UpgradeConflict: another reader already waits to write, and waits for you: release.
            LeaseLost: what the reader had is lost.
            DatabaseUnavailable: it reads on.
        """
        return run_sync(self._upgraded, blocking, timeout)

    async def aupgrade(self, blocking: bool = True, timeout: object = None) -> Hold | None:
        """``upgrade`` for asyncio."""
        return await self._upgraded(ASYNC, blocking, timeout)

    async def _downgraded(self, mode: Mode) -> Hold:
        hold = self.write().held_to("downgrade")
        if others := hold.all_but_one():
            await mode.call(hold.read_on, others)
        return hold

    async def _upgraded(self, mode: Mode, blocking: bool, timeout: object) -> Hold | None:
        hold, wait = self.read().held_to("upgrade"), self._wait(blocking, timeout)
        if hold.is_writing:
            return hold
        leases: list[Any] = []
        try:
            try:
                leases = await self.take_every(mode, hold, 0.0, UPGRADING)
            except AcquireTimeout:
                if not wait:
                    raise
                terms = Terms(self._ttl, holder_of(current()), holder_is_unique=True)
                async with intent(mode, self.name, self.using, terms):
                    leases = await self.take_every(mode, hold, wait, UPGRADING)
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
            hold.give_up(leases)
            if leases:
                await mode.call(abandon, leases)
            raise


@contextlib.asynccontextmanager
async def intent(mode: Mode, name: str, using: str, terms: Terms) -> AsyncIterator[None]:
    """Lease the row that only one reader has, which waits to write. Raises UpgradeConflict if another one has it."""
    lease = await mode.call(_declare, name, using, terms, undo=LockLease.abandon)
    try:
        yield
    except BaseException:
        await mode.call(lease.abandon)
        raise
    await mode.call(lease.give_back_or_expire)


def _declare(name: str, using: str, terms: Terms) -> LockLease:
    connection, key = connections[using], RWLockPermit.intent_of(name)
    with answer_timeout():
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
