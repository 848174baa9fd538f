"""The handle of one queue of this process's server: begins, checks and protects work on it."""

import asyncio
import contextlib
import math
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Self

from django.db.models import F

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db.open_transaction import guard_transaction
from resourcepool.exceptions import BadOption, LeaseLost, LeaseReleased, QueueBusy
from resourcepool.queues.models import Queue, Server
from resourcepool.queues.planning.assignment import QueueSnapshot

OWNED_ELSEWHERE = "another server has it now"


def refuse_event_loop() -> None:
    """Raise BadOption in a thread that runs an event loop, which would block, and whose tasks share one thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    name = threading.current_thread().name
    because = "it runs an event loop; run the server and its loop in another thread, with asyncio.to_thread(..)"
    raise BadOption("thread", name, because=because)


class WorkSlot:
    """One use of a queue: one step of a loop over ``queues``, or one ``working`` block."""

    def __init__(self, *, is_loop: bool) -> None:
        self.is_loop, self.thread = is_loop, threading.get_ident()


class HeldQueue:
    """A queue that this server has until it is handed over or taken over, or the server is presumed dead.

    ``(queue_id, fence)`` identifies one ownership for ever. Give ``fence`` to any system that can check it.

    Not promised: that work without checks (``ensure_held``, ``guard``) stops in time.

    Attributes:
        queue_id, parameter: as the operator entered them.
        fence: number of this ownership; goes up whenever the queue changes its server.
        lost: set when this server no longer has the queue.
    """

    def __init__(self, owner: Any, queue: QueueSnapshot, parameter: str) -> None:
        self.pk, self.queue_id, self.fence = queue.pk, queue.queue_id, queue.fence
        self.parameter = parameter
        self.lost = threading.Event()
        self._owner = owner  # the ``Membership``
        self._ended: LeaseLost | None = None
        # By this process's clock: when loops stop skipping it, and when it may be taken over (infinity: not requested).
        self.skipped_until, self.reliable_until = 0.0, math.inf
        self.is_leaving = False  # its hand-over is under way
        self.is_in_doubt = False  # its hand-over failed, perhaps after it took effect

    def __str__(self) -> str:
        return f"queue {self.queue_id}, fence {self.fence}"

    def __repr__(self) -> str:
        state = "held" if self.is_held else "ended"
        return f"<{type(self).__name__} {self.queue_id} fence={self.fence} {state}>"

    @property
    def is_held(self) -> bool:
        """Whether this process may still rely on having the queue. No I/O."""
        return self._why_not() is None

    @property
    def is_in_hand(self) -> bool:
        """Whether work on it is in progress, so that it is not handed over."""
        return self in self._owner.in_hand

    @property
    def is_asked_for(self) -> bool:
        """Whether it is to be handed over as soon as no work on it is in hand."""
        return not math.isinf(self.reliable_until)

    @property
    def should_stop(self) -> bool:
        """Whether long work should end soon: the queue is requested, lost or paused, or the server stops. No I/O."""
        return self.is_asked_for or self._owner.is_suspended or not self.is_held

    def ensure_held(self) -> None:
        """Return if this process may still rely on having the queue. No I/O, so call it as often as you like.

        Raises:
            LeaseLost: it was taken over or handed over, or its server's heartbeat was not confirmed in time.
        """
        self._owner.lease.ensure_held()
        why_not = self._why_not()
        if why_not is not None:
            raise why_not.again()

    def skip_for(self, seconds: float | timedelta) -> None:
        """Skip it in the loops over ``queues`` of all threads, as it has no work now.

        Args:
            seconds: how long, as a number or timedelta.
        """
        self.skipped_until = monotonic() + options.seconds("seconds", seconds)

    @contextlib.contextmanager
    def working(self) -> Iterator[Self]:
        """Keep it in hand for a block: it is not handed over before the end, within ``handover_timeout``.

        Raises:
            LeaseLost: this server no longer has it, or is handing it over; or, at the end: it was taken over
                while the block ran, so another server may have done the same work.
            QueueBusy: another thread works on it, the queue group is paused, or the server is stopping.
            BadOption: this thread runs an event loop (asyncio).
        """
        refuse_event_loop()
        self.ensure_held()
        slot = WorkSlot(is_loop=False)
        try:
            if not self._owner.begin(self, slot):
                raise self._why_not_begun()
            yield self
            self.ensure_held()  # before `finish`, after which it may be handed over at once
        finally:
            self._owner.finish(self, slot)

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only while this server has the queue.

        The queue's row is locked until the commit, so that no other server can take it over before.

        Raises:
            LeaseLost: this server does not have it. The innermost ``atomic`` block rolls back, even if the block
                catches the exception.
            GuardOutsideTransaction: no transaction is open on the database of the queues.
        """
        using, server = self._owner.using, self._owner.lease
        with guard_transaction(using, self.ensure_held, "queue"):
            row = Queue.objects.using(using).filter(pk=self.pk, cur_server=server.pk, fence=self.fence)
            if row.update(fence=F("fence")) != 1:
                self.end(LeaseLost(f"{self} is lost: {OWNED_ELSEWHERE}"))
                self.ensure_held()
            # A separate query after the lock, as the UPDATE might also lock the server's row, which heartbeats renew.
            if not Server.objects.using(using).alive().filter(pk=server.pk, fence=server.fence).exists():
                raise LeaseLost(f"{self} is not confirmed: the transaction does not see its server alive")
        yield self

    @property
    def is_over(self) -> bool:
        """Whether it is lost, and not in hand."""
        return self._ended is not None and not self.is_in_hand

    def end(self, how: LeaseLost) -> None:
        """Mark it as lost, for the reason ``how``; the first reason counts."""
        if self._ended is None:
            self._ended = how
            self.lost.set()

    def _why_not_begun(self) -> LeaseLost | QueueBusy:
        if self.is_asked_for:
            return LeaseReleased(f"{self} is requested by another server; no new work on it may begin")
        if self._owner.is_suspended and not self.is_in_hand:
            return QueueBusy(f"{self}: no work may begin while its queue group is paused or this server stops")
        return QueueBusy(f"{self}: another thread of this process works on it")

    def _why_not(self) -> LeaseLost | None:
        if self._ended is not None:
            return self._ended
        if self.is_leaving or self.is_in_doubt:
            return LeaseReleased(f"{self} is being handed over")
        if not self._owner.lease.is_held:
            return LeaseLost(f"{self} is not confirmed: its server's heartbeat was not confirmed in time")
        if monotonic() >= self.reliable_until:
            return LeaseLost(f"{self} was not handed over in time; another server may have it")
        return None
