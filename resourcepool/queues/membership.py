"""One incarnation of a server: it registers, looks, hands over, and leaves (R1.1, R1.5)."""

import logging
import math
import random
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.db import connections

from resourcepool.dialect import DbLater, DbNow
from resourcepool.exceptions import BadOption, ClaimInTransaction, LeaseLost, LeaseReleased
from resourcepool.leases.clock import monotonic
from resourcepool.leases.holder import default_holder
from resourcepool.leases.lease import Lease
from resourcepool.leases.retry import Unsettled, retrying
from resourcepool.leases.terms import Terms, margin
from resourcepool.leases.verbs import Grant
from resourcepool.queues import moving
from resourcepool.queues.held import TAKEN, HeldQueue
from resourcepool.queues.looking import Look, load, look
from resourcepool.queues.models import Queue, Server, TaskType
from resourcepool.queues.planning import Standing

logger = logging.getLogger(__name__)

FIRST_FENCE = 1
NEVER = -1  # a generation that no task type has
HURRY = 3  # heartbeats for which whoever has asked for queues looks more often
SPREAD = 0.2  # seconds over which those who notice a death at once spread their plans: the first one is enough


@dataclass(frozen=True, slots=True)
class Application:
    """What a server says of itself when it registers."""

    name: str
    weight: int
    labels: dict[str, str]
    limit: int | None


class Membership:
    """One row of ``Server`` that this process keeps alive, and the queues it has.

    One thread at a time calls ``turn``, ``drain`` and ``leave``; the rest may be called by any.

    Attributes:
        is_paused, is_stopping: work had better end, and none is begun.
        news: notified when queues have come or gone, or the last work on one has ended.
    """

    def __init__(
        self, using: str, task_type: TaskType, application: Application, ring: Callable[[], object]
    ) -> None:
        """Register; see ``_register`` for what it raises. ``ring`` is called when a ``turn`` is due sooner."""
        self.using, self.task_type = using, task_type
        self.is_paused = self.is_stopping = False
        self.news = threading.Condition()
        self._name, self._ring = application.name, ring
        self._held: dict[int, HeldQueue] = {}
        self._unfinished: list[HeldQueue] = []  # gone, but work on them still goes on in this process
        self._generation = NEVER
        self._hurries_until = 0.0  # what it has asked for may come at any moment
        self.lease = self._register(application)
        self.trusted_until = self._trust_from(self.lease.trust.sent_at)

    def __str__(self) -> str:
        return f"{self._name} #{self.lease.pk}"

    @property
    def held(self) -> list[HeldQueue]:
        """The queues that this server has, as far as it knows."""
        with self.news:
            return list(self._held.values())

    @property
    def is_resting(self) -> bool:
        """Whether no work is to begin, and what goes on had better end."""
        return self.is_paused or self.is_stopping

    @property
    def is_working(self) -> bool:
        """Whether work on any queue is in hand."""
        with self.news:
            return any(queue.is_in_hand for queue in [*self._held.values(), *self._unfinished])

    def begin(self, queue: HeldQueue, *, is_first: bool) -> bool:
        """Note that work on ``queue`` begins; False when none may.

        Args:
            is_first: only if nobody works on it yet.
        """
        with self.news:
            if any(old.pk == queue.pk and old is not queue and old.is_in_hand for old in self._unfinished):
                return False
            may = not is_first if queue.is_in_hand else queue.is_held and not queue.is_asked_for
            if may:
                queue.take()
            return may

    def finish(self, queue: HeldQueue) -> None:
        """Note that work on ``queue`` has ended."""
        with self.news:
            queue.put_down()
            if queue.is_in_hand:
                return
            self.news.notify_all()
        if self._is_ripe(queue):
            self._ring()

    def inherit(self, other: "Membership") -> None:
        """Take over what is still worked on of an incarnation that was lost; before anybody else uses this one."""
        self.news = other.news  # notified when that work ends
        with other.news:
            self._unfinished = [
                queue for queue in [*other._unfinished, *other._held.values()] if queue.is_in_hand
            ]

    def turn(self) -> float:
        """Look; plan, hand over and reload if there is reason to. Return when to do so again, by this process's clock.

        Raises:
            DatabaseUnavailable: and whatever the database says; nothing is given up for that.
        """
        # What is known is brought up to date first: that must not wait for whoever holds the task type's row.
        seen = self._look()
        if may_plan := seen.plan_in <= 0:
            moving.reassign(self.using, self.task_type.pk, str(self), if_due=True)
            seen = self._look()
        if self._release_idle():
            self._generation = NEVER
            seen = self._look()
        return self._next_look(seen, has_planned=may_plan)

    def counts_for(self) -> float:
        """Return for how many more seconds the others count on it, unless it renews; 0: it was judged dead."""
        rows = Server.objects.using(self.using).alive().filter(pk=self.lease.pk).with_ages()
        left = retrying(connections[self.using], rows.values_list("micros_left", flat=True).first)
        return max(left or 0, 0) / 1_000_000

    def leave(self) -> None:
        """Hand everything over at once and sign off. Work that is still in hand loses its queue."""
        self.lease.let_go()
        self.lose_all(LeaseReleased(f"server {self} has left"))
        moving.reassign(self.using, self.task_type.pk, str(self), leaving=[self.lease.pk])
        self.lease.was_released()

    def drain(self) -> None:
        """Have everything asked for by others, while the last work goes on."""

        def say_so(_: TaskType) -> None:
            Server.objects.using(self.using).filter(pk=self.lease.pk).update(state=Server.State.DRAINING)

        moving.reassign(self.using, self.task_type.pk, str(self), first=say_so)

    def lose_all(self, how: LeaseLost) -> None:
        """Note that every queue is gone."""
        with self.news:
            for queue in self._held.values():
                queue.end(how)
            self.news.notify_all()

    def _register(self, application: Application) -> Lease:
        if connections[self.using].in_atomic_block:
            raise ClaimInTransaction("a server registers outside of transactions: inside, nobody would see it")
        holder, grant, ttl = default_holder(), Grant(0, FIRST_FENCE, 0.0), 0.0

        def insert(task_type: TaskType) -> None:
            nonlocal grant, ttl
            if not Queue.objects.using(self.using).filter(task_type=task_type).exists():
                add = f"add some: `manage.py resourcepool_queues add {task_type.name} <queue> ..`"
                raise BadOption("task_type", task_type.name, f"it has no queues; {add}")
            sent_at, ttl = monotonic(), task_type.judge_dead_after
            row = self._row(application, holder, task_type)
            row.save(using=self.using, force_insert=True)
            grant = Grant(row.pk, FIRST_FENCE, sent_at)

        def settle() -> moving.Outcome:
            if not Server.objects.using(self.using).filter(pk=grant.pk, holder=holder).exists():
                raise Unsettled
            return moving.Outcome([])

        moving.reassign(self.using, self.task_type.pk, application.name, first=insert, settle=settle)
        every = self.task_type.heartbeat_every
        terms = Terms(ttl=ttl, holder=holder, renew_every=every, on_lost=self._was_lost)
        return Lease(Server, self.using, grant, terms)

    def _row(self, application: Application, holder: str, task_type: TaskType) -> Server:
        return Server(
            task_type_id=task_type.pk,  # a router may send leased rows elsewhere; this one stays with its task type
            name=application.name,
            weight=application.weight,
            labels=application.labels,
            limit=application.limit,
            ttl=task_type.judge_dead_after,
            holder=holder,
            fence=FIRST_FENCE,
            busy_before=DbLater(task_type.judge_dead_after),
            registered_at=DbNow(),
            idle_since=DbNow(),
        )

    def _was_lost(self, lease: Any) -> None:
        self.lose_all(LeaseLost(f"server {self} was not heard of in time"))

    def _trust_from(self, sent_at: float) -> float:
        # Whoever asks for a queue waits for at least this server's ttl: until then nothing unheard of can happen.
        return sent_at + self.lease.terms.ttl - margin(self.lease.terms.ttl)

    def _look(self) -> Look:
        seen = look(self.using, self.task_type.pk)
        if seen.generation != self._generation:
            self._reload(seen)
        self.trusted_until = self._trust_from(seen.sent_at)
        return seen

    def _reload(self, seen: Look) -> None:
        found = load(self.using, self.task_type.pk, self.lease.pk)
        mine = {one.pk: (one, parameter) for one, parameter in found if one.cur == self.lease.pk}
        with self.news:
            for pk, queue in list(self._held.items()):
                if pk not in mine or mine[pk][0].fence != queue.fence:
                    self._drop(queue)
            for pk, (one, parameter) in mine.items():
                queue = self._held.setdefault(pk, HeldQueue(self, one, parameter))
                queue.parameter = parameter
                queue.asked_until = self._asked_until(one, seen)
                queue.is_leaving = False
            self.is_paused = seen.is_paused
            self.news.notify_all()
        is_awaiting = any(one.req == self.lease.pk for one, _ in found)
        self._hurries_until = seen.sent_at + HURRY * seen.heartbeat_every if is_awaiting else 0.0
        self._generation = seen.generation

    def _drop(self, queue: HeldQueue) -> None:
        del self._held[queue.pk]
        queue.end(LeaseLost(f"{queue} is lost: {TAKEN}"))
        self._unfinished = [old for old in [*self._unfinished, queue] if old.is_in_hand]

    def _asked_until(self, one: Standing, seen: Look) -> float:
        if one.asked_ago is None:
            return math.inf
        left = max(seen.drain_within, self.lease.terms.ttl) - one.asked_ago
        return seen.sent_at + left - margin(self.lease.terms.ttl)

    def _release_idle(self) -> bool:
        """Give up what was asked for and is not worked on; tells whether there was any."""
        with self.news:
            idle = [queue for queue in self._held.values() if self._is_ripe(queue)]
            for queue in idle:
                queue.is_leaving = True
        if not idle:
            return False
        doubtful = [queue.pk for queue in idle if queue.is_doubtful]
        try:
            outcome = moving.release(
                self.using, self.task_type.pk, str(self), self.lease.pk, [q.pk for q in idle], doubtful
            )
        except BaseException:
            for queue in idle:
                queue.is_doubtful = True  # for good: what was sent may arrive late
            raise
        self._note_released(idle, outcome)
        return True

    def _is_ripe(self, queue: HeldQueue) -> bool:
        return (queue.is_asked_for or queue.is_doubtful) and not queue.is_in_hand

    def _note_released(self, idle: Collection[HeldQueue], outcome: moving.Outcome) -> None:
        gone = {change.queue.pk for change in outcome.changes if change.leaves_owner}
        with self.news:
            # The others count as leaving until they are read anew: after a lost reply they may have gone, too.
            for queue in idle:
                if queue.pk in gone:
                    self._held.pop(queue.pk, None)
                    queue.end(LeaseReleased(f"{queue} was handed over"))

    def _next_look(self, seen: Look, *, has_planned: bool) -> float:
        # Never so seldom that it would not trust itself any more, whatever the settings are by now.
        wait = min(seen.heartbeat_every, self.lease.terms.ttl / 3)
        if not has_planned:  # else something is locked, and the next heartbeat is soon enough
            wait = min(wait, seen.plan_in + random.uniform(0, SPREAD))  # noqa: S311 (not a secret)
        if seen.sent_at < self._hurries_until:
            wait = min(wait, seen.reload_every)
        return seen.sent_at + max(wait, seen.reload_every)
