"""One run of a server: it registers, checks for changes, hands queues over, and leaves."""

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from django.db import connections

from resourcepool.clock import monotonic
from resourcepool.db.retry import retrying
from resourcepool.db.transactions import SHORT_LOCK_WAIT
from resourcepool.exceptions import LeaseLost, LeaseReleased, RowLocked
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.queues import reassignment
from resourcepool.queues.models import QueueGroup, Server
from resourcepool.queues.serving.held_queue import OWNED_ELSEWHERE, HeldQueue, WorkSlot
from resourcepool.queues.serving.registration import ServerConfig, register, retry_while_locked
from resourcepool.queues.serving.snapshot import (
    ActivityReporter,
    OutageTracker,
    QueueGroupSnapshot,
    read_own_queues,
    read_snapshot,
)
from resourcepool.text import join_names

logger = logging.getLogger(__name__)

NO_GENERATION = -1  # no queue group has it
FAST_POLL = 3  # heartbeats for which a server that has requested queues checks more often
LEAVE_TIMEOUT = 20.0  # seconds for which a server that leaves waits for plans of others
SPREAD = 0.2  # seconds over which servers that notice a dead server spread their plans, as one plan is enough


class Membership:
    """One row of ``Server`` that this process keeps alive, and its queues.

    One thread calls ``turn``, and finally ``leave``; any thread may call the other methods.

    Attributes:
        is_paused, is_stopping: work should end, and no work may begin.
        changed: notified when queues are added or lost, or the last work on a queue has ended.
    """

    def __init__(
        self,
        using: str,
        queue_group: QueueGroup,
        config: ServerConfig,
        due_at: Callable[[float], object],
        after: "Membership | None" = None,
    ) -> None:
        """Register; raises as ``register``.

        Args:
            due_at: called with an earlier time for the next ``turn``.
            after: the last run, which was lost; its remaining queues are inherited.
        """
        self.using, self.queue_group, self.config = using, queue_group, config
        self.is_paused = self.is_stopping = False
        # Shared with the last run, so that no other thread begins work on a queue before that run's work has ended.
        self.changed: threading.Condition = threading.Condition() if after is None else after.changed
        self._slots: dict[WorkSlot, HeldQueue] = {} if after is None else after._slots
        self._due_at = due_at
        self._held: dict[int, HeldQueue] = {}
        self._snapshot: QueueGroupSnapshot | None = None
        self._generation, self._fast_poll_until = NO_GENERATION, 0.0
        self._is_draining = config.state == Server.State.DRAINING
        last: int | None = None if after is None else after.lease.pk
        self.lease: Lease = register(using, queue_group, config, self._was_lost, last)
        now, ttl = monotonic(), self.lease._terms.ttl
        self._outages: OutageTracker = OutageTracker(now, ttl, None if after is None else after._outages)
        self._waits = max(1, min(SHORT_LOCK_WAIT, int(ttl / 3)))  # seconds, during which it does not renew
        self.activity: ActivityReporter = ActivityReporter(now, None if after is None else after.activity)

    def __str__(self) -> str:
        return f"{self.config.name} #{self.lease.pk}"

    @property
    def _rows(self) -> Any:
        return Server.objects.using(self.using).filter(pk=self.lease.pk)

    @property
    def held(self) -> list[HeldQueue]:
        """The queues of this server, as last read."""
        with self.changed:
            return list(self._held.values())

    @property
    def heartbeat(self) -> float:
        """Seconds between two checks, by the current settings."""
        return (self._snapshot or self.queue_group).heartbeat_every

    @property
    def is_suspended(self) -> bool:
        """Whether no work may begin, and work in hand should end."""
        return self.is_paused or self.is_stopping

    @property
    def in_hand(self) -> list[HeldQueue]:
        """The queues with work in hand, including queues that this server has lost."""
        with self.changed:
            return list(dict.fromkeys(self._slots.values()))

    def begin(self, queue: HeldQueue, slot: WorkSlot) -> bool:
        """Take ``queue`` in hand for ``slot``; return whether that is allowed.

        Only the thread that has a queue in hand may begin more work on it, and not by a loop.
        """
        self.activity.touch(monotonic(), is_loop=slot.is_loop)
        with self.changed:
            others = [(other, held) for other, held in self._slots.items() if held.pk == queue.pk]
            if others:
                is_own = all(held is queue and other.thread == slot.thread for other, held in others)
                may = is_own and not slot.is_loop
            else:
                may = queue.is_held and not queue.is_asked_for and not self.is_suspended
            if may:
                self._slots[slot] = queue
            return may

    def finish(self, queue: HeldQueue, slot: WorkSlot) -> None:
        """End the work of ``slot`` on ``queue``, if it has begun."""
        with self.changed:
            if self._slots.pop(slot, None) is None or queue.is_in_hand:
                return
            self.changed.notify_all()
        if self._should_release(queue) and self._snapshot is not None:
            self._due_at(self._snapshot.earliest_check(self.lease._terms.ttl))

    def finish_loops(self) -> None:
        """End the work of this thread's loops, which it has left, even if a reference to the generator remains."""
        with self.changed:
            slots = list(self._slots.items())
        for slot, queue in slots:
            if slot.is_loop and slot.thread == threading.get_ident():
                self.finish(queue, slot)

    def turn(self) -> float:
        """Renew and check; plan, hand over and reload if necessary.

        Returns:
            When the next turn is due, by this process's clock.

        Raises:
            DatabaseUnavailable: or another database error; no queue is given up for that.
        """
        # The check comes first, as it must not wait for the holder of the queue group's row.
        if (snapshot := self._renew_and_check()) is None:
            return monotonic()
        self._outages.note_answer(monotonic())
        try:
            if self.is_stopping and not self._is_draining:
                self._drain()
            self.activity.report(self._rows, monotonic(), len(self.in_hand), snapshot.heartbeat_every)
            if self._outages.plan_in(snapshot) <= 0:
                self._reassign(if_due=True)
                snapshot = self._check()
            if self._release_idle():
                self._generation = NO_GENERATION
                snapshot = self._check()
            return self._next_check_at(snapshot)
        finally:
            self._outages.note_contact(monotonic())

    def leave(self) -> None:
        """Hand all queues over at once and sign off. Work that is still in hand loses its queue.

        Raises:
            DatabaseUnavailable: the other servers will presume it dead.
        """
        self.lease._stop_renewing()
        self.lose_all(LeaseReleased(f"server {self} has left"))
        # If all servers stop together, no other one is left to remove this row.
        leave = partial(self._reassign, leaving=[self.lease.pk], wait=SHORT_LOCK_WAIT)
        retry_while_locked(leave, LEAVE_TIMEOUT)
        self.lease._mark_released()
        logger.info("server %s has left", self)

    def next_config(self) -> ServerConfig:
        """Return the options to register again; a draining server keeps draining."""
        state = Server.State.DRAINING if self._is_draining else Server.State.UP
        return replace(self.config, state=state)

    def lose_all(self, how: LeaseLost) -> None:
        """Mark all queues as lost, for the reason ``how``."""
        with self.changed:
            for queue in self._held.values():
                self._end(queue, how)
            self.changed.notify_all()

    def _drain(self) -> None:
        """Let other servers request all queues while the last work continues."""
        in_hand = join_names([queue.queue_id for queue in self.in_hand])
        logger.info("server %s is stopping; in hand: %s", self, in_hand or "none")
        self._reassign(first=lambda _: self._rows.update(state=Server.State.DRAINING))
        self._is_draining = True

    def _reassign(self, **more: Any) -> None:
        options: dict[str, Any] = {
            "spare_overdue": self._outages.is_sparing(monotonic()),
            "wait": self._waits,
            **more,
        }
        reassignment.reassign(self.using, self.queue_group.pk, str(self), **options)

    def _was_lost(self, lease: Any) -> None:
        self.lose_all(LeaseLost(f"the heartbeat of server {self} was not confirmed in time"))

    def _renew_and_check(self) -> QueueGroupSnapshot | None:
        """Renew, if that is due, and check; None: the lease is lost."""
        # Only both together confirm the lease, from when the renewal was sent: a request that this server has not seen
        # takes effect after its ttl at the earliest.
        lease, sent_at, renewed = self.lease, monotonic(), None
        if lease._trust.due_at <= sent_at:
            held = [(lease.pk, lease.fence)]
            renewed = verbs.renew_unless_locked(connections[self.using], Server, held, [lease._terms.ttl])
            if renewed == 0:
                lease._lose(verbs.TAKEN)
                return None
        snapshot = self._check()
        if renewed:
            lease._trust.confirm(sent_at)
        return snapshot

    def _check(self) -> QueueGroupSnapshot:
        snapshot = read_snapshot(self.using, self.queue_group.pk)
        self.is_paused, self._snapshot = snapshot.is_paused, snapshot  # before loops are notified of new queues
        if snapshot.generation != self._generation:
            self._reload(snapshot)
        return snapshot

    def _reload(self, snapshot: QueueGroupSnapshot) -> None:
        rows = read_own_queues(self.using, self.queue_group.pk, self.lease.pk)
        state = retrying(connections[self.using], self._rows.values_list("state", flat=True).first)
        if state is not None:  # otherwise presumed dead: the last state remains
            self._is_draining = state == Server.State.DRAINING
        owned = {row.pk: (row, parameter) for row, parameter in rows if row.cur == self.lease.pk}
        count_before = len(self._held)
        with self.changed:
            for pk, queue in list(self._held.items()):
                if pk not in owned or owned[pk][0].fence != queue.fence:
                    del self._held[pk]
                    self._end(queue, LeaseLost(f"{queue} is lost: {OWNED_ELSEWHERE}"))
                elif queue.is_over:  # it was marked as lost by mistake
                    del self._held[pk]
            for pk, (row, parameter) in owned.items():
                queue = self._held.setdefault(pk, HeldQueue(self, row, parameter))
                queue.parameter = parameter
                queue.reliable_until = snapshot.reliable_until(row, self.lease._terms.ttl)
                queue.is_leaving = False
            self.changed.notify_all()
        if len(owned) != count_before:
            logger.info("server %s has %d queues (before: %d)", self, len(owned), count_before)
        has_requests = any(row.req == self.lease.pk for row, _ in rows)
        fast_poll = FAST_POLL * snapshot.heartbeat_every
        self._fast_poll_until = snapshot.sent_at + fast_poll if has_requests else 0.0
        self._generation = snapshot.generation

    def _end(self, queue: HeldQueue, how: LeaseLost) -> None:
        if queue.is_in_hand and not queue.lost.is_set():
            logger.warning("server %s: %s, while work on it continues", self, how)
        queue.end(how)

    def _release_idle(self) -> bool:
        """Give up requested queues without work in hand; return whether there were any."""
        with self.changed:
            idle = [queue for queue in self._held.values() if self._should_release(queue)]
            for queue in idle:
                queue.is_leaving = True
        if not idle:
            return False
        in_doubt = [queue.pk for queue in idle if queue.is_in_doubt]
        try:
            outcome = reassignment.release(
                *(self.using, self.queue_group.pk, str(self), self.lease.pk),
                *([queue.pk for queue in idle], in_doubt, self._waits),
            )
        except RowLocked:
            for queue in idle:
                queue.is_leaving = False
            raise
        except BaseException:
            for queue in idle:
                queue.is_in_doubt = True  # for good, as the statement may take effect late
            raise
        released = {change.queue.pk for change in outcome.changes if change.removes_from_owner}
        with self.changed:
            # The others stay `is_leaving` until they are reloaded, as after a lost reply they may be released, too.
            for queue in idle:
                if queue.pk in released:
                    self._held.pop(queue.pk, None)
                    queue.end(LeaseReleased(f"{queue} was handed over"))
        if released:
            logger.info("server %s has handed over %d queues and has %d", self, len(released), len(self.held))
        return True

    def _should_release(self, queue: HeldQueue) -> bool:
        return (queue.is_asked_for or queue.is_in_doubt) and not queue.is_in_hand

    def _next_check_at(self, snapshot: QueueGroupSnapshot) -> float:
        """Return when to check again: in time for the renewal of this run, even if the settings have changed."""
        ttl, plan_in = self.lease._terms.ttl, self._outages.plan_in(snapshot)
        wait = min(snapshot.heartbeat_every, ttl / 3, self.lease._trust.due_at - snapshot.sent_at)
        wait = min(wait, plan_in + random.uniform(0, SPREAD))  # noqa: S311 (not a secret)
        if snapshot.sent_at < self._fast_poll_until:
            wait = 0.0
        return max(snapshot.sent_at + wait, snapshot.earliest_check(ttl))
