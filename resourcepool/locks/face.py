"""What users of ``threading`` and ``asyncio`` expect of anything that is acquired and released."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

from resourcepool.exceptions import AcquireTimeout, BadOption
from resourcepool.locks.hold import Hold, own_error_first

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Hold)

GENERATORS = inspect.isgeneratorfunction, inspect.isasyncgenfunction


class Face(Generic[H]):
    """Acquired and released by name, by ``with`` and ``async with``, and as a decorator."""

    _timeout: float

    def acquire(self, blocking: bool = True, timeout: object = None) -> H | None:
        """Return the hold, or None if it did not come free; as ``threading.Lock.acquire``.

        Args:
            blocking: False: return at once. Those who wait in line are served first.
            timeout: seconds or timedelta to wait; None: as the lock was made with; -1: as long as it takes.

        Raises:
            LeaseLost: the caller has it already, and has lost it.
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: it was not decided; only when not waiting.
        """
        try:
            return self._obtain(self._wait(blocking, timeout))
        except AcquireTimeout:
            return None

    async def aacquire(self, blocking: bool = True, timeout: object = None) -> H | None:
        """``acquire`` for asyncio, for the running task; waiting occupies no thread."""
        try:
            return await self._aobtain(self._wait(blocking, timeout))
        except AcquireTimeout:
            return None

    def release(self) -> None:
        """Release it once, as often as it was acquired."""
        raise NotImplementedError

    async def arelease(self) -> None:
        """``release`` for asyncio."""
        raise NotImplementedError

    def __enter__(self) -> H:
        return self._entered(self._obtain(self._timeout))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with own_error_first(kind):
            self._left().release()

    async def __aenter__(self) -> H:
        return self._entered(await self._aobtain(self._timeout))

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with own_error_first(kind):
            await self._left().arelease()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Hold it while ``function`` runs; that may be a coroutine function.

        Raises:
            BadOption: it is no function, or a generator: that runs after the call, when the lock is released.
        """
        called: Any = function
        if not callable(called):
            raise BadOption("function", function, "a function or a coroutine function")
        if any(is_one(called) for is_one in GENERATORS):
            raise BadOption(
                "function", function, because="the body of a generator would run without it, so take it inside"
            )
        if any(inspect.iscoroutinefunction(one) for one in (called, type(called).__call__)):

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

    def _entered(self, hold: H) -> H:
        """Take note that a ``with`` block begins."""
        return hold

    def _left(self) -> Any:
        """Return what is released at the end of a ``with`` block."""
        return self

    def _wait(self, blocking: bool, timeout: object) -> float:
        """Return for how many seconds to wait."""
        raise NotImplementedError

    def _obtain(self, wait: float) -> H:
        """Return the hold within so many seconds, or raise AcquireTimeout."""
        raise NotImplementedError

    async def _aobtain(self, wait: float) -> H:
        raise NotImplementedError
