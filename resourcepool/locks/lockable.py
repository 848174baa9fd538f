"""The interface of locks and semaphores: ``acquire``, ``release``, ``with``, ``async with``, and as a decorator."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

from asgiref.sync import iscoroutinefunction

from resourcepool.db.threads.sync_async import ASYNC, Mode, run_sync
from resourcepool.exceptions import AcquireTimeout, BadOption, NotHeld
from resourcepool.locks.base import Named
from resourcepool.locks.hold import Hold, LockLease, suppress_if_raising
from resourcepool.locks.registry import Key, current_owner, holds_of, is_task
from resourcepool.options import Seconds
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.lease import delivered

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Hold)

GENERATORS = inspect.isgeneratorfunction, inspect.isasyncgenfunction


class Lockable(Generic[H]):
    """The methods of the locks of ``threading`` and ``asyncio``."""

    _timeout: float

    def acquire(self, blocking: bool = True, timeout: Seconds | None = None) -> H | None:
        """Return the hold, or None if it did not become free in time; like ``threading.Lock.acquire``.

        Args:
            blocking: False: return at once. Waiters are served first.
            timeout: seconds or timedelta to wait; None: the lock's own timeout; -1: no limit.

        Raises:
            LeaseLost: the caller held it and lost it.
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: the outcome is unknown; only without waiting, or if the login is refused.
        """
        return run_sync(self._acquire, self._wait(blocking, timeout))

    async def aacquire(self, blocking: bool = True, timeout: Seconds | None = None) -> H | None:
        """``acquire`` for asyncio, for the running task; waiting occupies no thread."""
        return await self._acquire(ASYNC, self._wait(blocking, timeout))

    def release(self) -> None:
        """Release it once. After as many releases as acquires, the first waiter gets it.

        Raises:
            NotHeld: this thread (or task) does not hold it.
            LeaseLost: it was lost before; a new holder is not affected.
        """
        run_sync(self._release)

    async def arelease(self) -> None:
        """``release`` for asyncio."""
        await self._release(ASYNC)

    def __enter__(self) -> H:
        return self._enter_result(run_sync(self._obtain, self._timeout))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with suppress_if_raising(kind):
            self._exit_target().release()

    async def __aenter__(self) -> H:
        return self._enter_result(await self._obtain(ASYNC, self._timeout))

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with suppress_if_raising(kind):
            await self._exit_target().arelease()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Hold it while ``function`` (plain or coroutine) runs. Raises BadOption for a generator function."""
        called: Any = function
        if not callable(called):
            raise BadOption("function", function, "a function or a coroutine function")
        if any(is_generator(called) for is_generator in GENERATORS):
            raise BadOption(
                "function", function, because="the body of a generator would run without it: acquire it inside"
            )
        if any(iscoroutinefunction(candidate) for candidate in (called, type(called).__call__)):

            @functools.wraps(function)
            async def alocked(*args: P.args, **kwargs: P.kwargs) -> Any:
                async with self:
                    return await called(*args, **kwargs)

            return cast(Callable[P, R], alocked)

        @functools.wraps(function)
        def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return locked

    async def _acquire(self, mode: Mode, wait: float, n: int = 1) -> H | None:
        try:
            return await self._obtain(mode, wait, n)
        except AcquireTimeout:
            return None

    def _enter_result(self, hold: H) -> H:
        return hold

    def _exit_target(self) -> Any:
        """Return the object to release at the end of a ``with`` block."""
        return self

    def _wait(self, blocking: bool, timeout: Seconds | None) -> float:
        raise NotImplementedError

    async def _obtain(self, mode: Mode, wait: float, n: int = 1) -> H:
        raise NotImplementedError

    async def _release(self, mode: Mode) -> None:
        raise NotImplementedError


class Reentrant(Lockable[H]):
    """Held by one thread or asyncio task, which may acquire it again and must release it as often."""

    def owned(self) -> bool:
        """Whether this thread (or task) still holds it. No I/O."""
        hold = holds_of(current_owner()).get(self._named.key)
        return hold is not None and hold.is_held

    def _require_hold(self, do: str) -> H:
        """Return the caller's hold, which it needs to ``do`` something; raises NotHeld, LeaseLost."""
        hold: H | None = holds_of(current_owner()).get(self._named.key)
        if hold is None:
            raise self._not_held(do)
        hold.ensure_held()
        return hold

    @property
    def _named(self) -> Named:
        raise NotImplementedError

    async def _obtain(self, mode: Mode, wait: float, n: int = 1) -> H:
        mine, key = holds_of(current_owner()), self._named.key
        if (hold := self._count_again(mine, key)) is None:
            hold = self._new_hold()
            self._take(mine, key, hold, await self._leases(mode, hold, wait))
        return hold

    def _new_hold(self) -> H:
        raise NotImplementedError

    async def _leases(self, mode: Mode, hold: H, wait: float) -> list[Any]:
        return await acquire(mode, self._named, self._named._request(wait, hold))

    def _count_again(self, mine: dict[Key, H], key: Key) -> H | None:
        """Return the caller's existing hold, with its count increased; None: it has none."""
        hold = mine.get(key)
        if hold is not None:
            hold.ensure_held()
            hold.count += 1
        return hold

    def _take(self, mine: dict[Key, H], key: Key, hold: H, leases: list[LockLease]) -> None:
        try:
            hold.leases = leases
            mine[key] = hold
            delivered(leases)  # last: until then the keeper lets leases of an interrupted caller expire
        except BaseException:
            mine.pop(key, None)
            raise

    def _not_held(self, do: str) -> NotHeld:
        caller = "task" if is_task() else "thread"
        return NotHeld(f"{self!r} is not held by this {caller}, so it cannot {do}")
