"""A condition variable for all processes on all hosts, with the methods of ``threading.Condition``.

Each notified waiter gets a leased row. If it crashes before it holds the lock again, the row passes to the next waiter.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db.sync_async import ASYNC, Mode, run_sync
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost
from resourcepool.locks import notifications
from resourcepool.locks.lock import Lock
from resourcepool.locks.lockable import Hold, wait_seconds
from resourcepool.locks.models import ConditionWaiter
from resourcepool.locks.notifications import ALL_WAITERS, NotificationLeases, NotificationSource, consume
from resourcepool.options import Seconds
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.source import release_quietly

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class Condition(NotificationSource):
    """A condition variable of a lock; a lock may have several::

        not_empty = Condition(Lock("orders"))
        with not_empty:
            not_empty.wait_for(lambda: Order.objects.filter(taken=False).exists(), timeout=60)

        with not_empty:
            Order.objects.create(...)
            not_empty.notify()

    Conditions with the same name are the same condition, so use a name with one lock only.

    Not promised: that the awaited state still holds when a waiter wakes up; another waiter may have been faster. After
    a pause or crash of a process, or an outage longer than a ticket's lifetime, a waiter may wake up without a
    notification, or two waiters by one. So wait in a loop, or with ``wait_for``. No notification is lost.

    Args:
        lock: protects the state that the condition is about; None: a lock with the condition's name.
        name: None: the lock's name.
    """

    model = ConditionWaiter
    kind = "condition"

    def __init__(self, lock: Lock | None = None, name: str | None = None) -> None:
        if lock is None and name is None:
            raise BadOption("lock", lock, "a Lock, or a name instead")
        if lock is not None and not isinstance(lock, Lock):
            raise BadOption("lock", lock, "a Lock; Condition(name=...) creates one of that name")
        self.lock = Lock(str(name)) if lock is None else lock
        super().__init__(self.lock.name if name is None else name, ttl=self.lock._ttl)
        # The lock's methods, as in ``threading``.
        self.acquire, self.aacquire = self.lock.acquire, self.lock.aacquire
        self.release, self.arelease = self.lock.release, self.lock.arelease

    def wait(self, timeout: Seconds | None = None) -> bool:
        """Release the lock, wait for a notification, acquire the lock again; False: not notified in time.

        Args:
            timeout: seconds or timedelta to wait for a notification; None: no limit. The lock is then acquired again
                without a timeout, with the same count as before.

        Raises:
            NotHeld, LeaseLost: the caller does not hold the lock, or has lost it.
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: the ticket could not be added; the lock is still held. Later outages do not end the
                wait.
        """
        return run_sync(self._run_wait, wait_seconds("timeout", timeout))

    async def await_(self, timeout: Seconds | None = None) -> bool:
        """``wait`` for asyncio; waiting occupies no thread. A cancelled task acquires the lock again, too."""
        return await self._run_wait(ASYNC, wait_seconds("timeout", timeout))

    def wait_for(self, predicate: Callable[[], Result], timeout: Seconds | None = None) -> Result:
        """Wait until ``predicate()``, called with the lock held, is true; return its result. Raises like ``wait``."""
        allowed = "a plain function; await_for also accepts a coroutine function"
        options.plain_function("predicate", predicate, allowed)
        until = monotonic() + wait_seconds("timeout", timeout)
        while not (result := predicate()) and (left := until - monotonic()) > 0:
            run_sync(self._run_wait, left)
        return result

    async def await_for(
        self, predicate: Callable[[], Result | Awaitable[Result]], timeout: Seconds | None = None
    ) -> Result:
        """``wait_for`` for asyncio; ``predicate`` may be a coroutine function, which can query the database."""
        if not callable(predicate):
            raise BadOption("predicate", predicate, "a function or a coroutine function")
        until = monotonic() + wait_seconds("timeout", timeout)
        while not (result := await _answer(predicate)) and (left := until - monotonic()) > 0:
            await self._run_wait(ASYNC, left)
        return result

    def notify(self, n: int = 1) -> int:
        """Wake up to ``n`` current waiters, in order of arrival; return how many.

        They continue once they hold the lock. In an open transaction this takes effect at the commit. Until then their
        tickets are locked and cannot be renewed, so keep the transaction short.

        Raises:
            NotHeld, LeaseLost: the caller does not hold the lock, or has lost it.
            DatabaseUnavailable: it is unknown whether they were notified.
        """
        return run_sync(self._run_notify, n)

    def notify_all(self) -> int:
        """Wake all current waiters; see ``notify``."""
        return self.notify(ALL_WAITERS)

    async def anotify(self, n: int = 1) -> int:
        """``notify`` for asyncio."""
        return await self._run_notify(ASYNC, n)

    async def anotify_all(self) -> int:
        """``notify_all`` for asyncio."""
        return await self.anotify(ALL_WAITERS)

    def __enter__(self) -> Hold:
        return self.lock.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self.lock.__exit__(*raised)

    async def __aenter__(self) -> Hold:
        return await self.lock.__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        await self.lock.__aexit__(*raised)

    async def _run_notify(self, mode: Mode, n: int) -> int:
        self.lock._require_hold("notify")
        return await mode.call(self._notify, options.whole("n", n, least=0, most=ALL_WAITERS))

    def _notify(self, count: int) -> int:
        return notifications.notify(self._connection, ConditionWaiter, self.name, count)

    async def _run_wait(self, mode: Mode, seconds: float) -> bool:
        hold, is_away = self.lock._require_hold("wait"), False
        given = hold.leases
        notified: NotificationLeases | None = None

        async def release(mode: Mode) -> None:
            nonlocal is_away
            is_away = True  # first, in case of an interruption
            try:
                await mode.call(_give_back, hold)
            except LeaseLost:
                is_away = False
                raise

        try:
            with contextlib.suppress(AcquireTimeout):
                notified = await acquire(mode, self, self._wait_request(seconds), on_enqueued=release)
            if is_away:
                await self.lock._acquire_again(mode, hold, given)
        except BaseException:  # Ctrl-C or a cancellation; a second Ctrl-C also ends this cleanup
            try:
                if is_away and hold.leases is given:
                    if mode.loop is None:  # a cancelled task leaves nothing behind
                        self.lock._release_leftovers()
                    await self.lock._acquire_again(mode, hold, given)
            finally:
                await mode.call(release_quietly, notified)
            raise
        # Only now: a crash before it holds the lock again passes the notification on. A task does not await this: if it
        # were cancelled then, its caller would not learn that it was notified.
        try:
            mode.soon(consume, notified or ())
        except BaseException:  # Ctrl-C: the caller does not learn that it was notified
            self._notify(len(notified or ()))
            raise
        return notified is not None


async def _answer(predicate: Callable[[], Result | Awaitable[Result]]) -> Result:
    result = predicate()
    return await result if isinstance(result, Awaitable) else result


def _give_back(hold: Hold) -> None:
    """Release the lock; if the database is unavailable, let it expire. Raises LeaseLost."""
    try:
        hold.leases[0].release()
    except DatabaseUnavailable as error:
        logger.warning("a lock was not released before a wait and will expire: %s", error)
