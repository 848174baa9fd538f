"""A semaphore: so many permits, of all processes on all hosts, and whoever holds one may go on.

Document 004 (R4.3) keeps a counter and a list of holders. Here a permit is a row that is leased: the permits of a
process that dies come back by themselves. Methods are those of ``threading.BoundedSemaphore`` and
``asyncio.Semaphore``.
"""

from typing import Any, ClassVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Max, Q

from resourcepool import options
from resourcepool.async_threads import for_asyncio, in_thread
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow, MicrosUntil
from resourcepool.exceptions import AcquireTimeout, BadOption, NotHeld
from resourcepool.leases.terms import Grant
from resourcepool.locks.face import Face
from resourcepool.locks.models import AbstractPermit, SemaphorePermit
from resourcepool.locks.owners import current, held_by
from resourcepool.locks.permits import PermitLease, Permits, say_once
from resourcepool.locks.process_holds import SemaphoreHold, holds
from resourcepool.locks.resizing import MOST_PERMITS, resize
from resourcepool.waiting.acquire import aacquire, acquire
from resourcepool.waiting.lease import delivered
from resourcepool.waiting.request import Request

MOST_AT_ONCE = 1_000


class Semaphore(Permits, Face[SemaphoreHold]):
    """So many permits, known by a name; see ``Named`` for the other options.

        licences = Semaphore("licence", 5)
        with licences as held: ...
        licences.acquire(n=2, timeout=10)   # both or none
        licences.release(2)

    They belong to the process, as with ``threading``: any of its threads may release what another one has acquired.
    One that is held may be asked for again: that is one more permit.

    ``value`` counts when the name is used for the first time; from then on ``resize`` changes it. Where the code
    says another number, the one in the database holds, and the log says so once per process.

    Not promised: that a holder which was stopped for longer than ``ttl``, and does not look (``held.ensure_held``,
    ``held.guard``), stops in time.

    Args:
        value: how many permits there are at first, 0 to 10,000.
    """

    model: ClassVar[type[SemaphorePermit]] = SemaphorePermit
    kind = "semaphore"

    def __init__(self, name: str, value: int = 1, **chosen: Any) -> None:
        super().__init__(name, **chosen)
        self.permits = options.whole("value", value, least=0, most=MOST_PERMITS)

    def acquire(self, blocking: bool = True, timeout: object = None, n: int = 1) -> SemaphoreHold | None:
        """Return what holds ``n`` permits, or None if they did not come free; as ``threading.Semaphore.acquire``.

        All or none. See ``Lock.acquire`` for the other arguments, and for what it raises besides.

        Raises:
            BadOption: there are not so many permits.
        """
        try:
            return self._obtain(self._wait(blocking, timeout), n)
        except AcquireTimeout:
            return None

    async def aacquire(self, blocking: bool = True, timeout: object = None, n: int = 1) -> SemaphoreHold | None:
        """``acquire`` for asyncio; waiting occupies no thread."""
        try:
            return await self._aobtain(self._wait(blocking, timeout), n)
        except AcquireTimeout:
            return None

    def release(self, n: int = 1) -> None:
        """Give ``n`` permits back: of this thread (or task) first, of other threads if it has not so many.

        Of several, the latest first, and those that a ``with`` block will give back last. They go to the next in line.

        Raises:
            NotHeld: this process does not hold so many; nothing has been changed.
            LeaseLost: one was lost before; the others are given back.
            DatabaseUnavailable: they are not renewed any more and expire.
        """
        PermitLease.give_back_together(self._taken_off(n))

    async def arelease(self, n: int = 1) -> None:
        """``release`` for asyncio."""
        await in_thread(PermitLease.give_back_together, self._taken_off(n))

    @property
    def value(self) -> int:
        """How many permits there are. Raises DatabaseUnavailable."""
        return self._count(Q(in_service=True))

    async def avalue(self) -> int:
        """``value`` for asyncio, which has to be called."""
        return await in_thread(lambda: self.value)

    def available(self) -> int:
        """Return how many permits are free at this moment of the database's clock. Raises DatabaseUnavailable."""
        return self._count(Q(in_service=True, busy_before__lte=DbNow()))

    aavailable = for_asyncio(available)

    def locked(self) -> bool:
        """Whether no permit is free; as ``asyncio.Semaphore.locked``. Raises DatabaseUnavailable."""
        return not self.available()

    alocked = for_asyncio(locked)

    def resize(self, n: int) -> int:
        """Let there be ``n`` permits, from 0 to 10,000; it stays so, whatever the code says.

        More: waiters are served at once. Fewer: free permits go first; those that are held stay with their holders
        until they are released, and nobody gets them after that.

        Returns:
            How many permits beyond ``n`` are held at this moment.

        Raises:
            RowLocked: a holder keeps one locked (``guard``); nothing has been changed.
            DatabaseUnavailable: it is not known.
        """
        return resize(self, options.whole("n", n, least=0, most=MOST_PERMITS))

    aresize = for_asyncio(resize)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        hold: SemaphoreHold | None = None
        try:
            hold = next(reversed(held_by(current()).get(self.key, ())), None)
            super().__exit__(kind, *rest)
        except BaseException:  # perhaps a signal's: the block is over, and nobody else would release it
            if hold is not None:
                hold.let_go()
            raise

    def _entered(self, hold: SemaphoreHold) -> SemaphoreHold:
        hold.is_of_block = True
        held_by(current()).setdefault(self.key, []).append(hold)  # of the innermost ``with`` block last
        return hold

    def _left(self) -> Any:
        mine = held_by(current())
        entered = mine.get(self.key, [])
        hold = entered.pop() if entered else self  # ``release_all`` was called in the block
        if not entered:
            mine.pop(self.key, None)  # a thread may use any number of names
        return hold

    def _obtain(self, wait: float, n: int = 1) -> SemaphoreHold:
        hold, request = self._asked(wait, n)
        return self._take(hold, acquire(self, request))

    async def _aobtain(self, wait: float, n: int = 1) -> SemaphoreHold:
        hold, request = self._asked(wait, n)
        return self._take(hold, await aacquire(self, request))

    def _asked(self, wait: float, n: int) -> tuple[SemaphoreHold, Request]:
        hold = SemaphoreHold(self.key, self._on_lost)
        return hold, self._request(wait, hold, options.whole("n", n, least=1, most=MOST_AT_ONCE))

    def _take(self, hold: SemaphoreHold, leases: list[PermitLease]) -> SemaphoreHold:
        try:
            hold.leases = sorted(
                leases, key=lambda lease: str(lease.pk)
            )  # all lock them in one order (``guard``)
            holds.add(hold)
            delivered(
                leases
            )  # last: until then an interrupted caller has nothing, and the keeper lets go of it
        except BaseException:
            holds.remove(hold)
            raise
        return hold

    def _taken_off(self, n: int) -> list[PermitLease]:
        n = options.whole("n", n, least=1, most=MOST_AT_ONCE)
        leases = holds.take(self.key, n)
        if isinstance(leases, int):
            raise NotHeld(f"{n} to release, but of {self!r} this process holds {leases}")
        return leases

    # What waiting needs: see ``waiting.request.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim as many free permits as are wanted; None when there are not enough. Raises BadOption as below."""
        grants = super().claim_free(connection, request)
        if grants is None and not request.timeout:
            self._refuse_too_many(connection, request)
        return grants

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """See that the rows are there; raise BadOption for more permits than there are: nobody else would get any."""
        super().refuse_impossible(connection, request)
        self._refuse_too_many(connection, request)

    def _refuse_too_many(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        if request.count == 1:  # of none at all, one is waited for
            return
        there_are = retrying(connection, self._rows(connection).filter(in_service=True).count)
        if there_are < request.count:
            raise BadOption("n", request.count, f"at most {there_are}: so many permits {self!r} has")

    def _who_has_it(self) -> str:
        return f": it has {self.value} permits"

    def _count(self, which: Q) -> int:
        connection = self._connection
        rows = self._rows(connection).aggregate
        found = retrying(connection, lambda: rows(there=Count("pk"), wanted=Count("pk", filter=which)))
        return int(found["wanted"]) if found["there"] else self.permits

    def _idle(self, connection: BaseDatabaseWrapper) -> float | None:
        found = self._rows(connection).aggregate(
            left=MicrosUntil(Max("busy_before")), value=Count("pk", filter=Q(in_service=True))
        )
        if found["left"] is None:
            return None
        if found["value"] != self.permits:
            there, said = found["value"], self.permits
            say_once(
                f"{self!r} has {there} permits and keeps them, though the code says {said}; resize() changes it"
            )
        return -float(found["left"]) / 1_000_000

    def _new_rows(self) -> list[AbstractPermit]:
        # One out of service stands for "none": without any row the name would be a new one.
        return [
            self._new_row(number, in_service=number < self.permits) for number in range(max(self.permits, 1))
        ]
