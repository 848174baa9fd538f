"""What a caller holds of a lock: a ``Hold`` with the lease of each row."""

import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self

from resourcepool.exceptions import ResourcePoolError
from resourcepool.locks.registry import has_ended
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.waiting.lease import AwaitedLease

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def suppress_if_raising(kind: type[BaseException] | None) -> Iterator[None]:
    """Only log an error at the end of a ``with`` block that was left by an exception (``kind``)."""
    try:
        yield
    except ResourcePoolError as error:
        if kind is None:
            raise
        logger.warning("%s", error)


class LockLease(AwaitedLease):
    """The lease of one row.

    Attributes:
        is_of_owner: the thread or task that acquired it is the only one that can release it.
    """

    is_of_owner: ClassVar[bool] = True

    @property
    def is_orphaned(self) -> bool:
        """See ``BaseLease``; whoever keeps the thread's or the task's object, or the hold."""
        return super().is_orphaned or (self.is_of_owner and has_ended(self.holder))

    def report_leak(self, why: str) -> None:
        """Let it expire: its thread or task ended without releasing it, and no other can."""
        logger.warning(
            "%s is not renewed any more, its holder ended without releasing it: %s", self, self.holder
        )
        self.stop_renewing()

    def lose(self, reason: str, trust: Any = None) -> None:
        """Record the loss in the history, which keeps no grants and releases of locks: there are too many."""
        was_over = self._state.has_ended
        super().lose(reason, trust)
        if self._state.lost is not None and not was_over:
            emit(RowEvent(EventKind.LOST, self.model, self.using, self.pk, self.fence, self.holder, reason))


class Hold:
    """What one caller holds: one row of a lock, or several, which are lost together.

    ``fence`` goes up with every grant of the lock: pass it to what you write to, which can refuse an older one.
    Not promised: that a holder that was stopped for longer than ``ttl`` notices in time; it has to look (``is_held``,
    ``ensure_held``, ``guard``).

    Attributes:
        name: of the lock.
        leases: of its rows; at least one.
        count: how often the holder has acquired it and not released it yet.
    """

    leases: Sequence[LockLease] = ()
    count = 1

    def __init__(self, name: str, on_lost: Callable[["Hold"], object] | None = None) -> None:
        self.name, self._on_lost = name, on_lost

    @property
    def fence(self) -> int:
        """The fence of the (first) row."""
        return self.leases[0].fence

    @property
    def holder(self) -> str:
        """The holder, as the rows say."""
        return self.leases[0].holder

    @property
    def is_held(self) -> bool:
        """Whether this process may still rely on it. No I/O, so ask before each step of the work."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """Seconds for which it can be relied on without another renewal; 0 when it is not held."""
        return min((lease.remaining for lease in self.leases), default=0.0)

    @property
    def lost(self) -> threading.Event:
        """Set as soon as the loss of a row is noticed. The rows may change, the event does not."""
        event: threading.Event = self.__dict__.setdefault("_lost", threading.Event())  # used rarely
        return event

    def ensure_held(self) -> None:
        """Return if this process may still rely on it. No I/O. Raises LeaseLost or LeaseReleased."""
        for lease in self.leases:
            lease.ensure_held()

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only while it is held; see ``Lease.guard``."""
        with contextlib.ExitStack() as stack:
            for lease in self.leases:
                stack.enter_context(lease.guard())
            yield self

    @property
    def when_lost(self) -> Callable[[LockLease], object]:
        """The callback for its leases: ``note_loss``, as long as the hold exists."""
        hold = weakref.ref(self)  # a lease that kept its own hold alive would never be forgotten, nor let go

        def note(lease: LockLease) -> None:
            if (mine := hold()) is not None:
                mine.note_loss(lease)

        return note

    def note_loss(self, lease: LockLease) -> None:
        """Note the loss of one row: called once for each, from a background thread."""
        is_first = not self.lost.is_set()
        self.lost.set()
        if is_first and self._on_lost is not None:
            self._on_lost(self)

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} belongs to this process: send its name, and its fence")

    def __repr__(self) -> str:
        state = "held" if self.is_held else "ended"
        return f"<{type(self).__name__} {self.name!r} fence={self.fence if self.leases else None} {state}>"
