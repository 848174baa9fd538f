"""A condition: threads of all processes wait, under a lock, until one of them tells that something has changed.

Document 004 (R4.5) keeps one lock for each waiter, which the signal releases. Here that is one leased row for each
waiter who is notified: if it dies before it has the lock again, the row passes to the next in line. Methods are those
of ``threading.Condition`` and ``asyncio.Condition``.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from resourcepool import options
from resourcepool.async_threads import in_thread
from resourcepool.database.clock import monotonic
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost
from resourcepool.locks.conditions import notifying
from resourcepool.locks.conditions.barrier import PREFIX
from resourcepool.locks.conditions.line import Notified, NotifiedLine, unused, use
from resourcepool.locks.hold import Hold
from resourcepool.locks.lock import Lock
from resourcepool.locks.ways import AWAITING, BLOCKING, Way, at_once
from resourcepool.waiting.lease import abandon

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class Condition(NotifiedLine):
    """A condition with a lock, which may have several of them.

        not_empty = Condition(Lock("orders"))
        with not_empty:
            not_empty.wait_for(lambda: Order.objects.filter(taken=False).exists(), timeout=60)

        with not_empty:
            Order.objects.create(...)
            not_empty.notify()

    Known by its name, as everything here: two conditions of one name are the same, so each name goes with one lock.

    Not promised: that a waiter finds what it waited for. Another may have been faster, and now and then a waiter wakes
    that nobody notified, or two for one notification: when a process stood still, or died, or the database did not
    answer for longer than tickets last. So wait in a loop, or with ``wait_for``. No notification is lost.

    Args:
        lock: that protects what the condition is about; None: one with the name of the condition.
        name: of the condition; None: the lock's.

    Raises:
        BadOption: names the option, the value, and what is allowed.
    """

    kind = "condition"

    def __init__(self, lock: Lock | None = None, name: str | None = None) -> None:
        if lock is None and name is None:
            raise BadOption("lock", lock, "a Lock, unless there is a name")
        if lock is not None and not isinstance(lock, Lock):
            raise BadOption("lock", lock, "a Lock; Condition(name=...) makes one with that name")
        self.lock = Lock(str(name)) if lock is None else lock
        super().__init__(self.lock.name if name is None else name, ttl=self.lock._ttl)
        if self.name.startswith(PREFIX):
            raise BadOption("name", self.name, f"a name that does not begin with {PREFIX!r}")
        # As in ``threading``: these are the lock's.
        self.acquire, self.aacquire = self.lock.acquire, self.lock.aacquire
        self.release, self.arelease = self.lock.release, self.lock.arelease

    def wait(self, timeout: object = None) -> bool:
        """Release the lock, wait to be notified, and take the lock again, as often as it was taken before.

        Args:
            timeout: seconds or timedelta to wait for a notification; None: as long as it takes. The lock is taken
                again however long that takes.

        Returns:
            False: the time was over before a notification came; the database decides which was first.

        Raises:
            NotHeld: the caller does not hold the lock.
            LeaseLost: it has lost it.
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: there is no place in line; the lock is still held. Later troubles are waited out.
        """
        return self._wait_for_notice(self._wait(True, timeout))

    async def await_(self, timeout: object = None) -> bool:
        """``wait`` for asyncio; waiting occupies no thread. A cancelled task has the lock again, too."""
        return await self._waited(AWAITING, self._wait(True, timeout))

    def wait_for(self, predicate: Callable[[], Result], timeout: object = None) -> Result:
        """Wait until ``predicate()``, called with the lock held, is true; return what it returned last.

        Raises:
            as ``wait``.
        """
        allowed = "a plain function; await_for takes a coroutine function, too"
        options.plain_function("predicate", predicate, allowed)
        until = monotonic() + self._wait(True, timeout)
        while not (result := predicate()) and (left := until - monotonic()) > 0:
            self._wait_for_notice(left)
        return result

    async def await_for(
        self, predicate: Callable[[], Result | Awaitable[Result]], timeout: object = None
    ) -> Result:
        """``wait_for`` for asyncio; ``predicate`` may be a coroutine function, which can ask the database."""
        if not callable(predicate):
            raise BadOption("predicate", predicate, "a function or a coroutine function")
        until = monotonic() + self._wait(True, timeout)
        while not (result := await _answer(predicate)) and (left := until - monotonic()) > 0:
            await self._waited(AWAITING, left)
        return result

    def notify(self, n: int = 1) -> int:
        """Wake up to ``n`` of those who wait now, first come, first served; returns how many were there.

        They go on once they have the lock. In an open transaction this takes effect at the commit, together with what
        was written; until then their processes cannot renew their places in line, so make it short.

        Raises:
            NotHeld: the caller does not hold the lock.
            LeaseLost: it has lost it.
            DatabaseUnavailable: it is unknown whether they were notified.
        """
        self.lock.held_to("notify")
        return self._notify(options.whole("n", n, least=0, most=notifying.EVERYBODY))

    def notify_all(self) -> int:
        """Wake all who wait now, and nobody who comes later; see ``notify``."""
        return self.notify(notifying.EVERYBODY)

    async def anotify(self, n: int = 1) -> int:
        """``notify`` for asyncio."""
        self.lock.held_to("notify")
        return await in_thread(self._notify, options.whole("n", n, least=0, most=notifying.EVERYBODY))

    async def anotify_all(self) -> int:
        """``notify_all`` for asyncio."""
        return await self.anotify(notifying.EVERYBODY)

    def __enter__(self) -> Hold:
        return self.lock.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self.lock.__exit__(*raised)

    async def __aenter__(self) -> Hold:
        return await self.lock.__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        await self.lock.__aexit__(*raised)

    def _notify(self, count: int) -> int:
        return notifying.notify(self._connection, self.name, count)

    def _wait_for_notice(self, seconds: float) -> bool:
        return at_once(self._waited, BLOCKING, seconds)

    async def _waited(self, way: Way, seconds: float) -> bool:
        hold, is_away = self.lock.held_to("wait"), False
        again = partial(self.lock.take_back_awaiting, hold, hold.leases)
        notified: Notified | None = None

        async def release() -> None:
            nonlocal is_away
            is_away = True  # first: whatever interrupts it
            try:
                await way.call(_give_back, hold)
            except LeaseLost:
                is_away = False
                raise

        try:
            with contextlib.suppress(AcquireTimeout):
                notified = await way.acquire(self, self._place(seconds), once_in_line=release)
            if is_away:
                await way.either(partial(self.lock.take_back, hold), again)
        except (
            BaseException
        ):  # a signal, at any moment, or a cancellation; the next signal ends the second try, too
            try:
                if is_away:
                    await way.either(partial(self.lock.take_back_anyway, hold), again)
            finally:
                await way.call(abandon, notified)
            raise
        # Only now: until it has the lock again, its death passes the notification on. A task does not wait for it:
        # cancelled just then it would not say that it is notified.
        try:
            way.soon(use, notified or ())
        except BaseException:  # the caller does not learn that it was notified
            if notified and (removed := unused(notified)):
                self._notify(removed)
            raise
        return notified is not None


async def _answer(predicate: Callable[[], Result | Awaitable[Result]]) -> Result:
    result = predicate()
    return await result if isinstance(result, Awaitable) else result


def _give_back(hold: Hold) -> None:
    """Give the lock back; without an answer it is not renewed any more, and expires. Raises LeaseLost."""
    try:
        hold.leases[0].give_back()
    except DatabaseUnavailable as error:
        logger.warning("a lock is not released before a wait, it expires: %s", error)
