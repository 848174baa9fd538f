"""A barrier that stands until somebody removes it: all who wait before it go on then. As in kazoo."""

from functools import partial

from django.db import IntegrityError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.async_threads import for_asyncio
from resourcepool.database.clock import monotonic
from resourcepool.database.retry import Unsettled, retrying
from resourcepool.dialect import DbLater, brief_transaction
from resourcepool.exceptions import AcquireTimeout
from resourcepool.leases import verbs
from resourcepool.leases.models import LeaseQuerySet
from resourcepool.leases.terms import default_holder
from resourcepool.locks.conditions import notifying
from resourcepool.locks.conditions.line import Notified, NotifiedLine, use
from resourcepool.locks.models import MAX_NAME, Notification
from resourcepool.locks.ways import AWAITING, BLOCKING, Way, at_once
from resourcepool.waiting.lease import abandon
from resourcepool.waiting.request import refuse_open_transaction

PREFIX = "barrier:"  # of the line's name: a condition of the same name has another one
STANDS = 100 * 365 * 86_400.0  # seconds


class _Gone(Exception):
    """There is no barrier (any more)."""


class Barrier(NotifiedLine):
    """A barrier known by its name. It outlives the process that created it, until it is removed.

        barrier = Barrier("import done")
        barrier.create()            # before the work begins
        barrier.remove()            # after it: all who wait go on

        Barrier("import done").wait(timeout=60)     # elsewhere

    Not promised: that it stands again, or still, when ``wait`` returns: somebody may have created another one.

    Raises:
        BadOption: the name is no line of 1 to 192 characters.
    """

    kind = "barrier"

    def __init__(self, name: str) -> None:
        super().__init__(PREFIX + options.name("name", name, most=MAX_NAME - len(PREFIX)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name.removeprefix(PREFIX)!r}>"

    def create(self) -> bool:
        """Put it up; False: it stands already. Raises DatabaseUnavailable."""
        # Not the text of a lease of this process, with which it would end.
        connection, holder = self._connection, default_holder().replace("/", " ")

        def send() -> bool:
            row = Notification(pk=self._pk, name=self.name, busy_before=DbLater(STANDS), holder=holder)
            try:
                with transaction.atomic(using=connection.alias):
                    verbs.rows_of(connection, Notification).bulk_create([row])
            except IntegrityError:
                return False
            return True

        def settle() -> bool:
            row = self._row(connection).values_list("holder", flat=True).first()
            if row is None:
                raise Unsettled
            return bool(row == holder)

        return retrying(connection, send, settle=settle)

    def remove(self) -> bool:
        """Take it away, and let all go on who wait before it; False: there was none. Raises DatabaseUnavailable."""
        return self._remove(self._row(self._connection))

    def _remove(self, row: LeaseQuerySet) -> bool:
        connection = self._connection

        def send() -> bool:
            with brief_transaction(connection):
                done = bool(row._raw_delete(connection.alias))
                if done:  # together: if this process dies in between, nobody is left waiting
                    notifying.notify(connection, self.name, notifying.EVERYBODY)
            return done

        return retrying(connection, send)

    def wait(self, timeout: object = None) -> bool:
        """Return True once it is gone; False: it still stood after ``timeout`` seconds (or a timedelta).

        Raises:
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: there is no place in line. Later troubles are waited out.
        """
        return at_once(self._waited, BLOCKING, timeout)

    async def await_(self, timeout: object = None) -> bool:
        """``wait`` for asyncio; waiting occupies no thread."""
        return await self._waited(AWAITING, timeout)

    acreate = for_asyncio(create)
    aremove = for_asyncio(remove)

    async def _waited(self, way: Way, timeout: object) -> bool:
        until = monotonic() + self._wait(True, timeout)
        try:
            now = seen = await way.call(self._first_fence)
            while now == seen:
                place = self._place(max(0.0, until - monotonic()))
                notified = await way.acquire(self, place, once_in_line=partial(way.call, self._see, seen))
                await way.call(self._use, notified)
                now = await way.call(self._fence)  # a waiter may wake whom nobody has notified
        except AcquireTimeout:
            return False
        except _Gone:
            return True
        return True

    def _use(self, notified: Notified) -> None:
        """Use up what a waiter was given. If that is the row of the barrier, somebody freed it: then all go on."""
        own = [lease for lease in notified if lease.pk == self._pk]
        try:
            for lease in own:
                self._remove(self._row(self._connection).filter(fence=lease.fence))
                lease.was_released()
        except BaseException:
            abandon(own)  # it passes to the next in line, who does that
            raise
        use([lease for lease in notified if lease not in own])

    def _see(self, fence: int) -> None:
        if self._fence() != fence:
            raise _Gone

    def _first_fence(self) -> int:
        """``_fence``, before the caller has a place in line: raises ClaimInTransaction also if there is no barrier."""
        refuse_open_transaction(self._connection, self._place(0.0))
        return self._fence()

    def _fence(self) -> int:
        """Return what tells this barrier from another one of its name; raises _Gone.

        Locks the row, and so waits for whoever removes it just now and has not seen the caller's place in line.
        """
        connection = self._connection

        def look() -> int | None:
            with brief_transaction(connection):
                rows: list[int] = list(
                    self._row(connection).select_for_update().values_list("fence", flat=True)
                )
            return rows[0] if rows else None

        if (fence := retrying(connection, look)) is None:
            raise _Gone
        return fence

    def _row(self, connection: BaseDatabaseWrapper) -> LeaseQuerySet:
        return verbs.rows_of(connection, Notification).filter(pk=self._pk)

    @property
    def _pk(self) -> str:
        return Notification.key_of(self.name, 0)
