"""A ``Hold``: the leases that a caller has of one lock."""

import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self

from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases.lease import Lease
from resourcepool.locks.registry import has_ended
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.waiting import release

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def suppress_if_raising(kind: type[BaseException] | None) -> Iterator[None]:
    """Log an error at the end of a ``with`` block, instead of raising it, if the block raised (``kind``)."""
    try:
        yield
    except ResourcePoolError as error:
        if kind is None:
            raise
        logger.warning("%s", error)


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

    def _lose(self, reason: str, trust: Any = None) -> None:
        """Record the loss in the history, which has too many grants and releases of locks to record those."""
        had_ended = self._state.has_ended
        super()._lose(reason, trust)
        if self._state.lost is not None and not had_ended:
            emit(RowEvent(EventKind.LOST, self.model, self.using, self.pk, self.fence, self.holder, reason))


class Hold:
    """The rows of one lock that one caller holds; they are lost together.

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

    def __init__(self, name: str, on_lost: Callable[["Hold"], object] | None = None) -> None:
        self.name, self._on_lost = name, on_lost

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
