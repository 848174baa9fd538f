"""The handle of one queue of this process's server: begins, checks and protects work on it."""

import asyncio
import contextlib
import math
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Protocol, Self

from django.db import connections
from django.db.models import F

from resourcepool import options
from resourcepool.database.clock import monotonic
from resourcepool.database.open_transaction import guard_transaction, set_idle_timeout
from resourcepool.exceptions import BadOption, LeaseLost, LeaseReleased, QueueBusy
from resourcepool.leases.lease import Lease
from resourcepool.queues.models import Queue, Server
from resourcepool.queues.planning.changes import QueueSnapshot

TAKEN = "another server has it by now"


def refuse_event_loop() -> None:
    """Raise BadOption in a thread that runs an event loop: it would block, and its tasks would count as one thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    name = threading.current_thread().name
    allowed = "it runs an event loop; run the server and its loop in another one, with asyncio.to_thread(..)"
    raise BadOption("thread", name, because=allowed)


class WorkSlot:
    """Code that works on a queue: one step of a loop over ``queues``, or one ``working`` block."""

    def __init__(self, *, is_loop: bool) -> None:
        self.is_loop, self.thread = is_loop, threading.get_ident()


class Owner(Protocol):
    """The part of ``Membership``, the server that has a queue, that the queue uses."""

    using: str
    lease: Lease

    @property
    def is_suspended(self) -> bool: ...

    @property
    def in_hand(self) -> Sequence["HeldQueue"]: ...

    def begin(self, queue: "HeldQueue", hand: WorkSlot) -> bool: ...

    def finish(self, queue: "HeldQueue", hand: WorkSlot) -> None: ...


class HeldQueue:
    """One queue, this server's until it is handed over, taken over, or the server is judged dead.

    ``(queue_id, fence)`` identifies one ownership for ever: give ``fence`` to any system that can check it.

    Not promised: that work which does not check (``ensure_held``, ``guard``) stops in time.

    Attributes:
        queue_id, parameter: as the operator entered them.
        lost: set when this server no longer has it.
    """

    def __init__(self, owner: Owner, queue: QueueSnapshot, parameter: str) -> None:
        self.pk, self.queue_id, self.fence = queue.pk, queue.queue_id, queue.fence
        self.parameter = parameter
        self.lost = threading.Event()
        self._owner = owner
        self._ended: LeaseLost | None = None
        # By this process's clock: when the loop stops skipping it, and when others may take it over (infinity: never).
        self.skipped_until, self.asked_until = 0.0, math.inf
        self.is_leaving = False  # it is just being given up
        self.is_in_doubt = False  # giving it up failed, perhaps after it took effect

    def __str__(self) -> str:
        return f"queue {self.queue_id}, fence {self.fence}"

    def __repr__(self) -> str:
        state = "held" if self.is_held else "ended"
        return f"<{type(self).__name__} {self.queue_id} fence={self.fence} {state}>"

    @property
    def is_held(self) -> bool:
        """Whether this process may still rely on having it. No I/O."""
        return self._why_not() is None

    @property
    def is_in_hand(self) -> bool:
        """Whether it is worked on, and so not handed over."""
        return self in self._owner.in_hand

    @property
    def is_asked_for(self) -> bool:
        """Whether it is to go to another server as soon as no work on it is in hand."""
        return not math.isinf(self.asked_until)

    @property
    def should_stop(self) -> bool:
        """Whether long work should end soon: asked for, lost, paused, or this server is to stop. No I/O."""
        return self.is_asked_for or self._owner.is_suspended or not self.is_held

    def ensure_held(self) -> None:
        """Return if this process may still rely on having it. No I/O, so call it as often as you like.

        Raises:
            LeaseLost: it was taken over, handed over, or its server's heartbeat was not confirmed in time.
        """
        self._owner.lease.ensure_held()
        why_not = self._why_not()
        if why_not is not None:
            raise why_not.again()

    def skip_for(self, seconds: float | timedelta) -> None:
        """Skip it in the loops over ``queues`` for so long, in all threads: it has no work now."""
        self.skipped_until = monotonic() + options.seconds("seconds", seconds)

    @contextlib.contextmanager
    def working(self) -> Iterator[Self]:
        """Work on it: it is not handed over before the block ends, unless that takes longer than ``handover_timeout``.

        Raises:
            LeaseLost: it is no longer this server's, or is being given up; or, at the end: it was taken over
                while the block ran, so another server may have done the same work.
            QueueBusy: another thread works on it, or no work may begin: paused, or the server is to stop.
            BadOption: this thread runs an event loop (asyncio).
        """
        refuse_event_loop()
        self.ensure_held()
        hand = WorkSlot(is_loop=False)
        try:
            if not self._owner.begin(self, hand):
                raise self._why_not_begun()
            yield self
            self.ensure_held()  # while it is in hand: right afterwards it may be handed over
        finally:
            self._owner.finish(self, hand)

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only while this server has the queue.

        The queue's row is locked until the commit, so nobody can take it over before.

        Raises:
            LeaseLost: it is not this server's; the innermost ``atomic`` block rolls back, also if it is caught inside.
            GuardOutsideTransaction: no transaction is open on the database of the queues.
        """
        using, server = self._owner.using, self._owner.lease
        with guard_transaction(using, self.ensure_held, "queue"):
            set_idle_timeout(connections[using], server.terms.ttl)
            mine = Queue.objects.using(using).filter(pk=self.pk, cur_server=server.pk, fence=self.fence)
            if mine.update(fence=F("fence")) != 1:
                self.end(LeaseLost(f"{self} is lost: {TAKEN}"))
                self.ensure_held()
            # A separate look, after the lock: the UPDATE might also lock the server's row, which heartbeats renew.
            if not Server.objects.using(using).alive().filter(pk=server.pk, fence=server.fence).exists():
                raise LeaseLost(f"{self} is not confirmed: the transaction does not see its server alive")
        yield self

    @property
    def is_over(self) -> bool:
        """Whether it is lost, and not in hand."""
        return self._ended is not None and not self.is_in_hand

    def end(self, how: LeaseLost) -> None:
        """Note that this server no longer has it."""
        if self._ended is None:
            self._ended = how
            self.lost.set()

    def _why_not_begun(self) -> LeaseLost | QueueBusy:
        if self.is_asked_for:
            return LeaseReleased(f"{self} has been asked for by another server; no work on it begins any more")
        if self._owner.is_suspended and not self.is_in_hand:
            return QueueBusy(f"{self}: no work begins while its queue group is paused or this server stops")
        return QueueBusy(f"{self} is being worked on by another thread of this process")

    def _why_not(self) -> LeaseLost | None:
        if self._ended is not None:
            return self._ended
        if self.is_leaving or self.is_in_doubt:
            return LeaseReleased(f"{self} is being handed over")
        if not self._owner.lease.is_held:
            return LeaseLost(
                f"{self} is not confirmed: its server was not, or the database did not answer in time"
            )
        if monotonic() >= self.asked_until:
            return LeaseLost(f"{self} should have been handed over by now; another server may have it")
        return None
