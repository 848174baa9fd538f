"""One run of a server: it registers, looks, hands over, and leaves (R1.1, R1.5)."""

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db import connections

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import SHORT_LOCK_WAIT
from resourcepool.exceptions import LeaseLost, LeaseReleased, RowLocked
from resourcepool.labels import join_names
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.queues import reassignment
from resourcepool.queues.models import QueueGroup, Server
from resourcepool.queues.serving.activity import ActivityReporter
from resourcepool.queues.serving.held_queue import TAKEN, HeldQueue, WorkSlot
from resourcepool.queues.serving.registration import ServerConfig, register
from resourcepool.queues.serving.snapshot import (
    OutageTracker,
    QueueGroupSnapshot,
    read_own_queues,
    read_snapshot,
)

logger = logging.getLogger(__name__)

NO_GENERATION = -1  # a generation that no queue group has
FAST_POLL = 3  # heartbeats for which a server that has asked for queues looks more often
SPREAD = 0.2  # seconds over which servers that notice a death spread their plans: one plan is enough


class Membership:
    """One row of ``Server`` that this process keeps alive, and its queues.

    One thread calls ``turn``, and calls ``leave`` last; any thread may call the rest.

    Attributes:
        is_paused, is_stopping: work should end, and none is begun.
        news: notified when queues have come or gone, or the last work on one has ended.
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
            due_at: called when a ``turn`` is due sooner.
            after: the last run, which was lost: its remaining queues are inherited.
        """
        self.using, self.queue_group, self.config = using, queue_group, config
        self.is_paused = self.is_stopping = False
        # Shared with the last run: nobody else begins what that has in hand before it has ended.
        self.changed: threading.Condition = threading.Condition() if after is None else after.changed
        self._hands: dict[WorkSlot, HeldQueue] = {} if after is None else after._hands
        self._due_at = due_at
        self._held: dict[int, HeldQueue] = {}
        self._seen: QueueGroupSnapshot | None = None
        self._generation, self._fast_poll_until = NO_GENERATION, 0.0
        self._is_draining = config.state == Server.State.DRAINING
        last: int | None = None if after is None else after.lease.pk
        self.lease: Lease = register(using, queue_group, config, self._was_lost, last)
        now, ttl = monotonic(), self.lease.terms.ttl
        self._outages: OutageTracker = OutageTracker(now, ttl, None if after is None else after._outages)
        self._waits = max(1, min(SHORT_LOCK_WAIT, int(ttl / 3)))  # seconds, in which it does not renew itself
        self.activity: ActivityReporter = ActivityReporter(now, None if after is None else after.activity)

    def __str__(self) -> str:
        return f"{self.config.name} #{self.lease.pk}"

    @property
    def _rows(self) -> Any:
        return Server.objects.using(self.using).filter(pk=self.lease.pk)

    @property
    def held(self) -> list[HeldQueue]:
        """The queues of this server, as far as it knows."""
        with self.changed:
            return list(self._held.values())

    @property
    def heartbeat(self) -> float:
        """Seconds between two looks, by the current settings."""
        return (self._seen or self.queue_group).heartbeat_every

    @property
    def is_suspended(self) -> bool:
        """Whether no work may begin, and work in hand should end."""
        return self.is_paused or self.is_stopping

    @property
    def in_hand(self) -> list[HeldQueue]:
        """The queues with work in hand, including queues that are gone."""
        with self.changed:
            return list(dict.fromkeys(self._hands.values()))

    def begin(self, queue: HeldQueue, hand: WorkSlot) -> bool:
        """Let ``hand`` take ``queue``; False: it may not. A queue in hand is its thread's alone, and no loop's."""
        self.activity.touch(monotonic(), is_loop=hand.is_loop)
        with self.changed:
            others = [(one, old) for one, old in self._hands.items() if old.pk == queue.pk]
            if others:
                is_mine = all(old is queue and one.thread == hand.thread for one, old in others)
                may = is_mine and not hand.is_loop
            else:
                may = queue.is_held and not queue.is_asked_for and not self.is_suspended
            if may:
                self._hands[hand] = queue
            return may

    def finish(self, queue: HeldQueue, hand: WorkSlot) -> None:
        """Let ``hand`` put ``queue`` down, if it has it."""
        with self.changed:
            if self._hands.pop(hand, None) is None or queue.is_in_hand:
                return
            self.changed.notify_all()
        if self._is_ripe(queue) and self._seen is not None:
            self._due_at(self._seen.earliest_check(self.lease.terms.ttl))

    def finish_loops(self) -> None:
        """Put down queues in the loops of this thread, which has left them, even if a reference remains."""
        with self.changed:
            hands = list(self._hands.items())
        for hand, queue in hands:
            if hand.is_loop and hand.thread == threading.get_ident():
                self.finish(queue, hand)

    def turn(self) -> float:
        """Renew and look; plan, hand over and reload if necessary. Return when to do so again, by this process's clock.

        Raises:
            DatabaseUnavailable: or another database error; nothing is given up for that.
        """
        # The look comes first: it must not wait for the holder of the queue group's row.
        if (seen := self._renew_and_look()) is None:
            return monotonic()
        self._outages.note_answer(monotonic())
        try:
            if self.is_stopping and not self._is_draining:
                self._drain()
            self.activity.report(self._rows, monotonic(), len(self.in_hand), seen.heartbeat_every)
            if self._outages.plan_in(seen) <= 0:
                self._reassign(if_due=True)
                seen = self._look()
            if self._release_idle():
                self._generation = NO_GENERATION
                seen = self._look()
            return self._next_look(seen)
        finally:
            self._outages.note_contact(monotonic())

    def leave(self) -> None:
        """Hand all queues over at once and sign off. Work that is still in hand loses its queue."""
        self.lease.stop_renewing()
        self.lose_all(LeaseReleased(f"server {self} has left"))
        self._reassign(leaving=[self.lease.pk], wait=SHORT_LOCK_WAIT)
        self.lease.mark_released()
        logger.info("server %s has left", self)

    def next_config(self) -> ServerConfig:
        """Return the options to register again; a draining server goes on draining."""
        state = Server.State.DRAINING if self._is_draining else Server.State.UP
        return replace(self.config, state=state)

    def lose_all(self, how: LeaseLost) -> None:
        """Note that all queues are gone."""
        with self.changed:
            for queue in self._held.values():
                self._end(queue, how)
            self.changed.notify_all()

    def _drain(self) -> None:
        """Let others ask for all queues while the last work goes on."""
        in_hand = join_names([queue.queue_id for queue in self.in_hand])
        logger.info("server %s stops; in hand: %s", self, in_hand or "nothing")
        self._reassign(first=lambda _: self._rows.update(state=Server.State.DRAINING))
        self._is_draining = True

    def _reassign(self, **more: Any) -> None:
        how: dict[str, Any] = {
            "spare_overdue": self._outages.is_sparing(monotonic()),
            "wait": self._waits,
            **more,
        }
        reassignment.reassign(self.using, self.queue_group.pk, str(self), **how)

    def _was_lost(self, lease: Any) -> None:
        self.lose_all(LeaseLost(f"server {self} was not heard of in time"))

    def _renew_and_look(self) -> QueueGroupSnapshot | None:
        """Renew, if that is due, and look; None: the lease is lost."""
        # Both together confirm the lease, from when the renewal was sent: a request of another server takes effect
        # after this server's ttl at the earliest, so until then nothing unknown can happen.
        lease, sent_at, renewed = self.lease, monotonic(), None
        if lease.trust.due_at <= sent_at:
            held = [(lease.pk, lease.fence)]
            renewed = verbs.renew_unless_locked(connections[self.using], Server, held, [lease.terms.ttl])
            if renewed == 0:
                lease.lose(verbs.TAKEN)
                return None
        seen = self._look()
        if renewed:
            lease.trust.confirm(sent_at)
        return seen

    def _look(self) -> QueueGroupSnapshot:
        seen = read_snapshot(self.using, self.queue_group.pk)
        self.is_paused, self._seen = seen.is_paused, seen  # before loops are told of new queues
        if seen.generation != self._generation:
            self._reload(seen)
        return seen

    def _reload(self, seen: QueueGroupSnapshot) -> None:
        found = read_own_queues(self.using, self.queue_group.pk, self.lease.pk)
        state = retrying(connections[self.using], self._rows.values_list("state", flat=True).first)
        if state is not None:  # else judged dead, and as it was
            self._is_draining = state == Server.State.DRAINING
        mine = {one.pk: (one, parameter) for one, parameter in found if one.cur == self.lease.pk}
        had = len(self._held)
        with self.changed:
            for pk, queue in list(self._held.items()):
                if pk not in mine or mine[pk][0].fence != queue.fence:
                    del self._held[pk]
                    self._end(queue, LeaseLost(f"{queue} is lost: {TAKEN}"))
                elif queue.is_over:  # it was marked as lost by mistake
                    del self._held[pk]
            for pk, (one, parameter) in mine.items():
                queue = self._held.setdefault(pk, HeldQueue(self, one, parameter))
                queue.parameter = parameter
                queue.asked_until = seen.reliable_until(one, self.lease.terms.ttl)
                queue.is_leaving = False
            self.changed.notify_all()
        if len(mine) != had:
            logger.info("server %s has %d queues, had %d", self, len(mine), had)
        is_awaiting = any(one.req == self.lease.pk for one, _ in found)
        self._fast_poll_until = seen.sent_at + FAST_POLL * seen.heartbeat_every if is_awaiting else 0.0
        self._generation = seen.generation

    def _end(self, queue: HeldQueue, how: LeaseLost) -> None:
        if queue.is_in_hand and not queue.lost.is_set():
            logger.warning("server %s: %s, while work on it goes on", self, how)
        queue.end(how)

    def _release_idle(self) -> bool:
        """Give up queues that were asked for and are not worked on; returns whether there were any."""
        with self.changed:
            idle = [queue for queue in self._held.values() if self._is_ripe(queue)]
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
                queue.is_in_doubt = True  # for ever: the statement may take effect late
            raise
        gone = {change.queue.pk for change in outcome.changes if change.leaves_owner}
        with self.changed:
            # The others count as leaving until they are reloaded: after a lost reply they may be gone, too.
            for queue in idle:
                if queue.pk in gone:
                    self._held.pop(queue.pk, None)
                    queue.end(LeaseReleased(f"{queue} was handed over"))
        if gone:
            logger.info("server %s has given up %d queues, has %d", self, len(gone), len(self.held))
        return True

    def _is_ripe(self, queue: HeldQueue) -> bool:
        return (queue.is_asked_for or queue.is_in_doubt) and not queue.is_in_hand

    def _next_look(self, seen: QueueGroupSnapshot) -> float:
        """Return when to look again: in time for its own renewal, whatever the present settings."""
        ttl, plan_in = self.lease.terms.ttl, self._outages.plan_in(seen)
        wait = min(seen.heartbeat_every, ttl / 3, self.lease.trust.due_at - seen.sent_at)
        wait = min(wait, plan_in + random.uniform(0, SPREAD))  # noqa: S311 (not a secret)
        if seen.sent_at < self._fast_poll_until:
            wait = 0.0
        return max(seen.sent_at + wait, seen.earliest_check(ttl))
