"""A server's look with every heartbeat, one statement for any number of queues; and absences without looks."""

import math
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import Min, OuterRef, Subquery

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import MicrosUntil
from resourcepool.leases.terms import margin
from resourcepool.queues.models import Queue, QueueGroup, Server
from resourcepool.queues.planning.changes import QueueSnapshot, takeover_after
from resourcepool.queues.queries import COLUMNS, of_server, snapshot_of

LONG = 2 / 3  # of a server's ttl, in which it renews itself at least three times


@dataclass(frozen=True, slots=True)
class QueueGroupSnapshot:
    """The state of a queue group; durations in seconds. ``sent_at``: this process's clock before the query was sent.

    ``plan_in``: time until a plan is due; infinity: only after another change. ``due_in``: the same for a server that
    judges none dead.
    """

    sent_at: float
    generation: int
    is_paused: bool
    heartbeat_every: float
    reload_every: float
    handover_timeout: float
    plan_in: float
    due_in: float

    def earliest_check(self, ttl: float) -> float:
        """Return the earliest next look of a server of this ``ttl``, by this process's clock."""
        return self.sent_at + min(self.reload_every, ttl / 3)

    def reliable_until(self, queue: QueueSnapshot, ttl: float) -> float:
        """Return until when the owner, of this ``ttl``, may rely on ``queue``; infinity: it is not asked for."""
        if queue.asked_ago is None:
            return math.inf
        return self.sent_at + takeover_after(self.handover_timeout, ttl) - queue.asked_ago - margin(ttl)


def read_snapshot(using: str, queue_group: int) -> QueueGroupSnapshot:
    """Look once.

    Raises:
        DatabaseUnavailable: the database does not answer.
        QueueGroup.DoesNotExist: it was deleted.
    """
    rows = (
        QueueGroup.objects.using(using)
        .filter(pk=queue_group)
        .annotate(
            micros_of_rest=MicrosUntil("rests_until"),
            next_dead=MicrosUntil(Subquery(_least(Server, "busy_before"))),
            first_asked=MicrosUntil(Subquery(_least(Queue.objects.exclude(requested_at=None), "requested_at"))),
        )
    )
    sent_at = monotonic()
    found: Any = retrying(connections[using], rows.get)
    rest = max(0.0, (found.micros_of_rest or 0) / 1_000_000)
    dead = math.inf if found.next_dead is None else found.next_dead / 1_000_000
    late = math.inf
    if found.first_asked is not None:
        late = found.first_asked / 1_000_000 + takeover_after(found.handover_timeout, found.judge_dead_after)
    due_in = max(rest, 0.0 if found.is_assignment_due else late)
    return QueueGroupSnapshot(
        *(sent_at, found.generation, found.is_paused),
        *(found.heartbeat_every, found.reload_every, found.handover_timeout),
        plan_in=min(due_in, max(rest, dead)),
        due_in=due_in,
    )


def seconds_until_dead(using: str, server: int) -> float:
    """Return in how many seconds a server is judged dead, unless it renews; 0: it already is."""
    rows = Server.objects.using(using).alive().filter(pk=server).with_ages()
    left: int | None = retrying(connections[using], rows.values_list("micros_left", flat=True).first)
    return max(left or 0, 0) / 1_000_000


def _least(rows: Any, moment: str) -> Any:
    rows = getattr(rows, "objects", rows).filter(queue_group=OuterRef("pk")).order_by()
    return rows.values("queue_group").annotate(least=Min(moment)).values("least")


def read_own_queues(using: str, queue_group: int, server: int) -> list[tuple[QueueSnapshot, str]]:
    """Return the queues that ``server`` has or has asked for, each with its parameter; one statement."""
    rows = Queue.objects.using(using).filter(of_server(server), queue_group=queue_group).order_by("pk")
    found = rows.annotate(asked=MicrosUntil("requested_at")).values_list("parameter", *COLUMNS, "asked")
    return retrying(connections[using], lambda: [(snapshot_of(*row), parameter) for parameter, *row in found])


class OutageTracker:
    """Whether an outage was so long that this server should judge none dead: others may have been away, too.

    It spares them for one ``ttl`` after an outage that it has noticed, and not again before it could judge once: after
    repeated outages dead servers must still be found. A server that noticed no outage judges meanwhile, so the bad
    network of one server keeps no queue from the others. Times: see ``database.clock``.
    """

    def __init__(self, now: float, ttl: float, after: "OutageTracker | None" = None) -> None:
        """Begin at ``now``; ``after``: of this server's last run, which was away until now."""
        self._ttl, self._heard_at = ttl, now
        self._may_spare, self.sparing_until = True, -math.inf
        if after is not None:
            self._may_spare, self.sparing_until = after._may_spare, after.sparing_until
            if self._may_spare:
                self._spare(now)

    def note_contact(self, now: float) -> None:
        """Note an answer of the database, or that this server was busy until now."""
        self._heard_at = now

    def note_answer(self, now: float) -> None:
        """Note an answer of the database after this server was idle."""
        if self._may_spare and self._is_long(now):
            self._spare(now)
        elif now >= self.sparing_until:
            self._may_spare = True  # dead servers are judged now
        self.note_contact(now)

    def is_sparing(self, now: float) -> bool:
        """Whether no server is to be judged dead now."""
        return now < self.sparing_until or (self._may_spare and self._is_long(now))

    def plan_in(self, seen: QueueGroupSnapshot) -> float:
        """Return in how many seconds from this look a plan by this server is due."""
        return min(seen.due_in, max(seen.plan_in, self.sparing_until - seen.sent_at))

    def _spare(self, now: float) -> None:
        self._may_spare, self.sparing_until = False, now + self._ttl

    def _is_long(self, now: float) -> bool:
        return now - self._heard_at > self._ttl * LONG
