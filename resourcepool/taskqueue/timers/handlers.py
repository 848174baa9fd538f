"""Handlers of timers, by topic, and their argument."""

import contextlib
import datetime
import logging
import math
from collections.abc import Callable, Iterator
from typing import Any, Self

from django.utils.module_loading import autodiscover_modules

from resourcepool.clock import monotonic
from resourcepool.db.dialect import for_project
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Grant, Terms
from resourcepool.options import Seconds
from resourcepool.taskqueue.handlers import Handler, Registry, Run
from resourcepool.taskqueue.policy import GIVEN_BACK, Result
from resourcepool.taskqueue.running_task import Attempt
from resourcepool.taskqueue.timers.claims import ClaimedTimer
from resourcepool.taskqueue.timers.models import MAX_TOPIC, Timer

logger = logging.getLogger(__name__)

timer_registry = Registry("topic", MAX_TOPIC)
find = timer_registry.find


def on(topic: str, *, max_runtime: Seconds | None = None) -> Callable[[Run], Run]:
    """Register a function for the timers of one topic; see ``taskqueue.handler`` for its results and ``max_runtime``.

        @timers.on("order.timeout")
        def expire(timer): ...

    It is called with a ``RunningTimer``. A node without a handler for a topic skips its timers.

    Raises:
        BadOption: the topic has another handler already, or a value is not allowed.
    """
    return timer_registry.register(topic, max_runtime)


def discover() -> None:
    autodiscover_modules("task_handlers", "timer_handlers")


def topics() -> list[str]:
    return sorted(timer_registry.known)


class RunningTimer(Attempt):
    """One attempt at a timer: the argument of its handler.

    Attributes:
        name, topic: see ``schedule``.
        payload: the JSON object that was scheduled.
        attempt: the number of this attempt, from 1 for each occurrence of a recurring timer.
        previous_end: how the previous attempt ended: "" there was none, "clean" it failed, "expired" its process
            crashed, was suspended or lost its database session, "released" its process released it before it stopped.
        due_at: the scheduled time.
        late_by: a timedelta: how long after ``due_at`` this attempt began, by the database clock.
        missed: how many further occurrences were missed by then; this attempt covers them, too.
    """

    data_name = "payload"
    overdue_text = "{0} ran for more than {0.max_runtime:g} s"
    payload: dict[str, Any]

    def __init__(self, using: str, claimed: ClaimedTimer, handler: Handler | None) -> None:
        grant = Grant(claimed.pk, claimed.fence, claimed.holder, claimed.sent_at)
        lease, topic = Lease(Timer, using, grant, Terms(claimed.topic.ttl, claimed.holder)), claimed.topic.name
        super().__init__(lease, topic, claimed.payload, handler, claimed.attempt, claimed.fence)
        lease._is_delivered = True
        self.name, self.topic, self.previous_end = claimed.name, topic, claimed.previous_end
        self.due_at, self.missed = for_project(claimed.due_at), claimed.missed
        self.late_by: datetime.timedelta = claimed.now - claimed.due_at
        self.pk, self.claimed, self.took, self.begun_at = claimed.pk, claimed, 0.0, math.inf
        self._unclaimed = [True]

    def take_turn(self) -> bool:
        """Return True to the first caller only: the thread that runs the timer, or the node that releases it."""
        try:
            return self._unclaimed.pop()  # atomic
        except IndexError:
            return False

    @property
    def has_begun(self) -> bool:
        return self.begun_at < math.inf

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only while this attempt is the current one; see ``Lease.guard``.

        Raises:
            LeaseLost: this attempt is not current; the innermost ``atomic`` block rolls back.
            GuardOutsideTransaction: no transaction is open.
        """
        with self.lease.guard():
            yield self

    def run(self) -> Result:
        """Call the handler, unless the process is stopping or the lease has expired by now."""
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

    def ended(self, result: Result, *, is_cut_off: bool = False) -> Result:
        """Return the result with how the attempt ended: a failure after the lease has expired is a lost lease."""
        is_lost = result.error is not None and not self.lease.is_held
        result = result._replace(is_lost=is_lost, has_begun=self.has_begun, is_cut_off=is_cut_off)
        if result.error is not None:
            logger.warning("%s %s in attempt %d: %s", self, result.how, self.attempt, result.error)
        return result

    def __str__(self) -> str:
        return f"timer {self.topic}/{self.name}"
