"""What locks and semaphores have in common: ``acquire``, ``release``, ``with``, decorators, and what a caller holds."""

import contextlib
import functools
import inspect
import logging
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, ParamSpec, Self, TypeVar, cast

from asgiref.sync import iscoroutinefunction

from resourcepool import options
from resourcepool.db.sync_async import ASYNC, Mode, run_sync
from resourcepool.events import Sentence
from resourcepool.exceptions import AcquireTimeout, BadOption, ResourcePoolError
from resourcepool.leases.lease import Lease
from resourcepool.locks.registry import has_ended
from resourcepool.options import Seconds
from resourcepool.signals import EventKind
from resourcepool.translation import gettext_noop as _
from resourcepool.waiting import release

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound="Hold")

FOREVER = -1  # the infinite timeout of ``threading``
GENERATORS = inspect.isgeneratorfunction, inspect.isasyncgenfunction

logger = logging.getLogger(__name__)


class LockLease(Lease):
    """The lease of one row.

    Attributes:
        is_of_owner: only the thread or task that acquired it can release it.
    """

    _next_in_line: ClassVar[Any] = release
    is_of_owner: ClassVar[bool] = True

    @property
    def _is_orphaned(self) -> bool:
        """See ``Lease``; also true if its thread or task has ended, even if something still refers to the hold."""
        return super()._is_orphaned or (self.is_of_owner and has_ended(self.holder))

    def _report_leak(self, why: str) -> None:
        """Let it expire: its thread or task ended without releasing it, and nothing else can."""
        logger.warning("%s: its holder ended without releasing it; it will expire: %s", self, self.holder)
        self._stop_renewing()

    def _emits(self, kind: EventKind) -> bool:
        model: Any = self.model
        return kind is EventKind.LOST or model.emits_grants


class Released:
    """Released at the end of a ``with`` block."""

    def release(self) -> None:
        raise NotImplementedError

    async def arelease(self) -> None:
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with _suppressed_if(kind):
            self.release()

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with _suppressed_if(kind):
            await self.arelease()


class Hold(Released):
    """The rows of one lock that one caller holds; they are lost together. In a ``with`` block it is released once.

    ``fence`` grows with every grant of the lock: send it with each write, so that the receiver can reject an older one.
    Not promised: that a holder that was paused for longer than ``ttl`` notices the loss in time; check with
    ``is_held``, ``ensure_held`` or ``guard``.

    Attributes:
        name: the name of the lock.
        leases: the leases of its rows; at least one.
        count: how many acquires have not been released yet.
    """

    leases: Sequence[LockLease] = ()
    count = 1

    def __init__(self, lock: Any, name: str, on_lost: Callable[[Any], object] | None = None) -> None:
        self._lock, self.name, self._on_lost = lock, name, on_lost

    @property
    def fence(self) -> int:
        """The fence of the (first) row."""
        return self.leases[0].fence

    @property
    def holder(self) -> str:
        """The holder, as the rows name it."""
        return self.leases[0].holder

    @property
    def is_held(self) -> bool:
        """Whether this process may still rely on it. No I/O, so check before each step of the work."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """Seconds until it must be renewed; 0 if it is not held."""
        return min((lease.remaining for lease in self.leases), default=0.0)

    @property
    def lost(self) -> threading.Event:
        """Set once the loss of a row is noticed. The rows may change, the event stays the same."""
        event: threading.Event = self.__dict__.setdefault("_lost", threading.Event())  # rarely needed
        return event

    def ensure_held(self) -> None:
        """Check that this process may still rely on it. No I/O. Raises LeaseLost or LeaseReleased."""
        for lease in self.leases:
            lease.ensure_held()

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only if it is still held; see ``Lease.guard``."""
        with contextlib.ExitStack() as stack:
            for lease in self.leases:
                stack.enter_context(lease.guard())
            yield self

    def release(self) -> None:
        """Release it once, as ``release`` of its lock."""
        self._lock.release()

    async def arelease(self) -> None:
        """``release`` for asyncio."""
        await self._lock.arelease()

    def __enter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    @property
    def _when_lost(self) -> Callable[[LockLease], object]:
        """The ``on_lost`` callback of its leases: calls ``_note_loss`` while the hold exists."""
        hold = weakref.ref(self)  # a strong reference from its lease would hide a leak

        def note(lease: LockLease) -> None:
            if (mine := hold()) is not None:
                mine._note_loss(lease)

        return note

    def _note_loss(self, lease: LockLease) -> None:
        """Note the loss of a row; called once for each row, from a background thread."""
        is_first = not self.lost.is_set()
        self.lost.set()
        if is_first and self._on_lost is not None:
            self._on_lost(self)

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled or copied: send its name and fence instead")

    def __repr__(self) -> str:
        state = "held" if self.is_held else "ended"
        return f"<{type(self).__name__} {self.name!r} fence={self.fence if self.leases else None} {state}>"


class Lockable(Released, Generic[H]):
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
        return run_sync(self._acquire, seconds_to_wait(self._timeout, blocking, timeout))

    async def aacquire(self, blocking: bool = True, timeout: Seconds | None = None) -> H | None:
        """``acquire`` for asyncio, for the running task; waiting occupies no thread."""
        return await self._acquire(ASYNC, seconds_to_wait(self._timeout, blocking, timeout))

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
        return run_sync(self._obtain, self._timeout)

    async def __aenter__(self) -> H:
        return await self._obtain(ASYNC, self._timeout)

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

    async def _obtain(self, mode: Mode, wait: float, n: int = 1) -> H:
        raise NotImplementedError

    async def _release(self, mode: Mode) -> None:
        raise NotImplementedError


def seconds_to_wait(usual: float, blocking: bool, timeout: Seconds | None) -> float:
    """Return the seconds to wait, by the arguments of ``threading``, ``usual`` without a timeout. Raises BadOption."""
    if blocking is not True and not options.flag("blocking", blocking):
        if timeout not in (None, FOREVER):
            raise BadOption("timeout", timeout, "None with blocking=False")
        return 0.0
    return usual if timeout is None else wait_seconds("timeout", timeout)


def wait_seconds(name: str, value: object) -> float:
    """Return the seconds to wait; None and -1: no limit. Raises BadOption."""
    if value is None or value == FOREVER:
        return math.inf
    try:
        return options.seconds(name, value)
    except BadOption as error:
        allowed = Sentence(_("%(span)s, or -1 for no limit"), span=error.allowed)
        raise BadOption(name, value, allowed) from None


@contextlib.contextmanager
def _suppressed_if(kind: type[BaseException] | None) -> Iterator[None]:
    """Log an error at the end of a ``with`` block, instead of raising it, if the block raised (``kind``)."""
    try:
        yield
    except ResourcePoolError as error:
        if kind is None:
            raise
        logger.warning("%s", error)
