"""A barrier, like kazoo's: waiters block until it is removed."""

from functools import partial

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db.dialect import DbLater
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.retry import Unsettled, retrying
from resourcepool.db.rows import insert_unless_exists
from resourcepool.db.sync_async import ASYNC, Mode, for_asyncio, run_sync
from resourcepool.db.timeouts import statement_timeout
from resourcepool.db.transactions import short_transaction
from resourcepool.exceptions import AcquireTimeout
from resourcepool.leases import verbs
from resourcepool.leases.models import LeaseQuerySet
from resourcepool.leases.terms import default_holder
from resourcepool.locks import notifications
from resourcepool.locks.lockable import wait_seconds
from resourcepool.locks.models import MAX_NAME, Barrier as BarrierRow
from resourcepool.locks.notifications import NotificationSource, consume
from resourcepool.options import Seconds
from resourcepool.waiting.acquire import acquire

BARRIER_TTL = 100 * 365 * 86_400.0  # seconds: it never expires


class _BarrierRemoved(Exception):
    """There is no barrier."""


class Barrier(NotificationSource):
    """A barrier known by its name. It outlives the process that created it, until it is removed.

        barrier = Barrier("import done")
        barrier.create()            # before the work begins
        barrier.remove()            # after the work: all waiters continue

        Barrier("import done").wait(timeout=60)     # in other processes

    Not promised: that there is no barrier when ``wait`` returns: a new one may have been created.

    Args:
        name: one line of 1 to 200 characters.
    """

    model = BarrierRow
    kind = "barrier"

    def __init__(self, name: str) -> None:
        super().__init__(options.name("name", name, most=MAX_NAME))

    def create(self) -> bool:
        """Create it; False: it exists already. Raises DatabaseUnavailable."""
        # Without "/", so that ``release_all`` for this process does not match it.
        connection, holder = self._connection, default_holder().replace("/", " ")

        def send() -> bool:
            row = BarrierRow(pk=self._pk, name=self.name, busy_before=DbLater(BARRIER_TTL), holder=holder)
            insert_unless_exists(row, connection.alias)
            return self._row(connection).filter(holder=holder).exists()

        return retrying(connection, send)

    def remove(self) -> bool:
        """Remove it, so that all waiters continue; False: there was none. Raises DatabaseUnavailable."""
        connection, fence = self._connection, list[int]()
        row = self._row(connection)

        def send() -> bool:
            with short_transaction(connection):
                fence[:] = row.select_for_update().values_list("fence", flat=True)
                if fence:  # in one transaction: a crash in between leaves no waiter behind
                    row._raw_delete(connection.alias)
                    notifications.notify(connection, BarrierRow, self.name, notifications.ALL_WAITERS)
            return bool(fence)

        def settle() -> bool:
            if not fence or row.filter(fence=fence[0]).exists():
                raise Unsettled
            return True

        return retrying(connection, send, settle=settle)

    def wait(self, timeout: Seconds | None = None) -> bool:
        """Wait until it is removed and return True; False: it was still there after ``timeout`` (seconds or timedelta).

        Raises:
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: the ticket could not be added. Later outages do not end the wait.
        """
        return run_sync(self._run_wait, timeout)

    async def await_(self, timeout: Seconds | None = None) -> bool:
        """``wait`` for asyncio; waiting occupies no thread."""
        return await self._run_wait(ASYNC, timeout)

    acreate = for_asyncio(create)
    aremove = for_asyncio(remove)

    async def _run_wait(self, mode: Mode, timeout: Seconds | None) -> bool:
        until = monotonic() + wait_seconds("timeout", timeout)
        try:
            awaited = await mode.call(self._first_fence)
            while True:
                request = self._wait_request(max(0.0, until - monotonic()))
                notified = await acquire(mode, self, request, on_enqueued=partial(self._recheck, fence=awaited))
                await mode.call(consume, notified)
                await self._recheck(mode, awaited)  # a waiter may wake up without a notification
        except AcquireTimeout:
            return False
        except _BarrierRemoved:
            return True

    async def _recheck(self, mode: Mode, fence: int) -> None:
        if await mode.call(self._fence) != fence:
            raise _BarrierRemoved

    def _first_fence(self) -> int:
        """``_fence``; raises ClaimInTransaction also if there is no barrier."""
        refuse_open_transaction(self._connection)
        return self._fence()

    def _fence(self) -> int:
        """Return the fence, which differs in a later barrier of this name; raises _BarrierRemoved.

        It locks the row, and so waits for a concurrent ``remove`` that has not seen the caller's ticket.
        """
        connection = self._connection

        def look() -> int | None:
            with short_transaction(connection):
                return self._row(connection).select_for_update().values_list("fence", flat=True).first()

        with statement_timeout():
            fence = retrying(connection, look)
        if fence is None:
            raise _BarrierRemoved
        return fence

    def _row(self, connection: BaseDatabaseWrapper) -> LeaseQuerySet:
        return verbs.rows_of(connection, BarrierRow).filter(pk=self._pk)

    @property
    def _pk(self) -> str:
        return BarrierRow.own_key(self.name)
