"""A timer in the hands of its handler."""

import contextlib
import datetime
import math
from collections.abc import Iterator
from typing import Any, Self

from resourcepool.database.clock import monotonic
from resourcepool.dialect import for_project
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Grant, Terms
from resourcepool.taskqueue.handlers import Handler
from resourcepool.taskqueue.running_task import Attempt, Result
from resourcepool.taskqueue.timers.claims import AttemptEnd, ClaimedTimer
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.taskqueue.worker_loop import GIVEN_BACK


class RunningTimer(Attempt):
    """One attempt at a timer: what its handler is given.

    Attributes:
        name, topic: see ``schedule``.
        payload: the JSON object that was given.
        attempt: 1 for the first one of each occurrence of a recurring timer.
        previous_end: how the attempt before this one ended: "" there was none, "clean" it failed, "expired" its process
            died, stood still or lost its database session, "released" it was given back when its process was to stop.
        due_at: the moment for which it was set.
        late_by: a timedelta: how long after that this attempt was begun, by the database's clock.
        missed: how many further occurrences there were by then for which it fires, too.
    """

    data_name = "payload"
    payload: dict[str, Any]

    def __init__(self, using: str, claimed: ClaimedTimer, handler: Handler | None) -> None:
        grant = Grant(claimed.pk, claimed.fence, claimed.holder, claimed.sent_at)
        lease, topic = Lease(Timer, using, grant, Terms(claimed.rule.ttl, claimed.holder)), claimed.rule.name
        super().__init__(lease, topic, claimed.payload, handler, claimed.attempt, claimed.fence)
        lease.is_delivered = True
        self.name, self.topic, self.previous_end = claimed.name, topic, claimed.previous_end
        self.due_at, self.missed = for_project(claimed.due_at), claimed.missed
        self.late_by: datetime.timedelta = claimed.now - claimed.due_at
        self.claimed, self.took, self.begun_at = claimed, 0.0, math.inf
        self._turns = [True]

    def take_turn(self) -> bool:
        """Return True to the first caller alone: the thread that runs it, or the node that gives it back unbegun."""
        try:
            return self._turns.pop()  # in one step, whatever other threads do
        except IndexError:
            return False

    @property
    def has_begun(self) -> bool:
        return self.begun_at < math.inf

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only while this attempt is the current one; see ``Lease.guard``.

        Raises:
            LeaseLost: it is not; the innermost ``atomic`` block rolls back.
            GuardOutsideTransaction: no transaction is open.
        """
        with self.lease.guard():
            yield self

    def run(self) -> Result:
        """Call the handler, unless the process is to stop, or the lease ran out, before its turn came."""
        if not self.take_turn():
            return GIVEN_BACK
        if self.is_stopping or not self.lease.is_held:
            return Result("", is_given_back=True)
        self.begun_at = monotonic()
        self.overdue_at = self.begun_at + (math.inf if self.max_runtime is None else self.max_runtime)
        try:
            return super().run()
        finally:
            self.took = monotonic() - self.begun_at

    def ended(self, result: Result, *, is_cut_off: bool = False) -> AttemptEnd:
        """Return what is to be written; what fails after the lease ran out may have failed because of that."""
        is_lost = result.error is not None and not self.lease.is_held
        begun = self.has_begun
        return AttemptEnd(self.claimed, *result, is_lost=is_lost, has_begun=begun, is_cut_off=is_cut_off)

    def __str__(self) -> str:
        return f"timer {self.topic}/{self.name}"
