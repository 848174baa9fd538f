"""A server's check with every heartbeat, one statement for any number of queues; outages without checks; activity."""

import math
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import Min, OuterRef, Subquery

from resourcepool.clock import monotonic
from resourcepool.db.dialect import DbLater, MicrosUntil
from resourcepool.db.retry import retrying
from resourcepool.leases.terms import margin
from resourcepool.queues.models import Queue, QueueGroup, Server
from resourcepool.queues.planning.assignment import QueueSnapshot
from resourcepool.queues.planning.changes import takeover_after
from resourcepool.queues.queries import COLUMNS, of_server, snapshot_of

OUTAGE_FRACTION = 2 / 3  # of a server's ttl, during which it renews at least three times

REPORT_EVERY = 3  # heartbeats


@dataclass(frozen=True, slots=True)
class QueueGroupSnapshot:
    """The state of a queue group; durations in seconds. ``sent_at``: this process's clock before the query was sent.

    ``plan_in``: time until a plan is due; infinity: only after another change. ``due_in``: the same for a server that
    presumes none dead.
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
        """Return the earliest next check of a server of this ``ttl``, by this process's clock."""
        return self.sent_at + min(self.reload_every, ttl / 3)

    def reliable_until(self, queue: QueueSnapshot, ttl: float) -> float:
        """Return until when the owner, of this ``ttl``, may rely on ``queue``; infinity: it is not requested."""
        if queue.requested_ago is None:
            return math.inf
        return self.sent_at + takeover_after(self.handover_timeout, ttl) - queue.requested_ago - margin(ttl)


def read_snapshot(using: str, queue_group: int) -> QueueGroupSnapshot:
    """Read the state of a queue group; one statement.

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
            first_request=MicrosUntil(
                Subquery(_least(Queue.objects.exclude(requested_at=None), "requested_at"))
            ),
        )
    )
    sent_at = monotonic()
    row: Any = retrying(connections[using], rows.get)
    rest = max(0.0, (row.micros_of_rest or 0) / 1_000_000)
    dead_in = math.inf if row.next_dead is None else row.next_dead / 1_000_000
    overdue_in = math.inf
    if row.first_request is not None:
        overdue_in = row.first_request / 1_000_000 + takeover_after(row.handover_timeout, row.judge_dead_after)
    due_in = max(rest, 0.0 if row.is_assignment_due else overdue_in)
    return QueueGroupSnapshot(
        *(sent_at, row.generation, row.is_paused),
        *(row.heartbeat_every, row.reload_every, row.handover_timeout),
        plan_in=min(due_in, max(rest, dead_in)),
        due_in=due_in,
    )


def seconds_until_dead(using: str, server: int) -> float:
    """Return the seconds until a server is presumed dead, unless it renews; 0: it already is."""
    rows = Server.objects.using(using).alive().filter(pk=server).with_ages()
    left: int | None = retrying(connections[using], rows.values_list("micros_left", flat=True).first)
    return max(left or 0, 0) / 1_000_000


def _least(rows: Any, moment: str) -> Any:
    rows = getattr(rows, "objects", rows).filter(queue_group=OuterRef("pk")).order_by()
    return rows.values("queue_group").annotate(least=Min(moment)).values("least")


def read_own_queues(using: str, queue_group: int, server: int) -> list[tuple[QueueSnapshot, str]]:
    """Return the queues that ``server`` has or has requested, each with its parameter; one statement."""
    queues = Queue.objects.using(using).filter(of_server(server), queue_group=queue_group).order_by("pk")
    rows = queues.annotate(asked=MicrosUntil("requested_at")).values_list("parameter", *COLUMNS, "asked")
    return retrying(connections[using], lambda: [(snapshot_of(*row), parameter) for parameter, *row in rows])


class OutageTracker:
    """Decides whether this server should presume none dead, as others may have lost the database, too.

    After an outage that it has noticed it spares them for one ``ttl``, and not again before it has had a chance to
    presume servers dead, which must work after repeated outages, too. A server that noticed no outage does so
    meanwhile, so that the bad network of one server keeps no queue from the others. Times: see ``database.clock``.
    """

    def __init__(self, now: float, ttl: float, after: "OutageTracker | None" = None) -> None:
        """Begin at ``now``; ``after``: the tracker of this server's last run, which had no database until now."""
        self._ttl, self._last_contact = ttl, now
        self._may_spare, self.sparing_until = True, -math.inf
        if after is not None:
            self._may_spare, self.sparing_until = after._may_spare, after.sparing_until
            if self._may_spare:
                self._spare(now)

    def note_contact(self, now: float) -> None:
        """Note an answer of the database, or that this server was busy until now."""
        self._last_contact = now

    def note_answer(self, now: float) -> None:
        """Note an answer of the database after this server was idle."""
        if self._may_spare and self._is_long(now):
            self._spare(now)
        elif now >= self.sparing_until:
            self._may_spare = True  # from now on it presumes servers dead
        self.note_contact(now)

    def is_sparing(self, now: float) -> bool:
        """Return whether no server is to be presumed dead now."""
        return now < self.sparing_until or (self._may_spare and self._is_long(now))

    def plan_in(self, seen: QueueGroupSnapshot) -> float:
        """Return in how many seconds after this check a plan by this server is due."""
        return min(seen.due_in, max(seen.plan_in, self.sparing_until - seen.sent_at))

    def _spare(self, now: float) -> None:
        self._may_spare, self.sparing_until = False, now + self._ttl

    def _is_long(self, now: float) -> bool:
        return now - self._last_contact > self._ttl * OUTAGE_FRACTION


class ActivityReporter:
    """Remembers when work on a server's queues last began, and writes it to the server's row.

    The row is updated in a separate statement after a check, if the state has changed. Times are of ``database.clock``.
    """

    def __init__(self, now: float, after: "ActivityReporter | None" = None) -> None:
        """Begin at ``now``, when the code should ask for work, or continue ``after``, the same code in the last run."""
        self._last_activity_at: float = now if after is None else after._last_activity_at
        self._has_loop: bool | None = None if after is None else after._has_loop  # None: no activity yet
        self._reported_at, self._reported = -math.inf, (0.0, -1)

    def touch(self, now: float, *, is_loop: bool) -> None:
        """Note that work was begun or asked for; ``is_loop``: by a loop over ``queues``."""
        self._last_activity_at = now
        self._has_loop = bool(self._has_loop) or is_loop

    def report(self, rows: Any, now: float, in_hand: int, heartbeat: float) -> None:
        """Write the last activity and the number of queues in hand into ``rows``, the server's row, if that is due."""
        state = self._last_activity_at, in_hand
        if state == self._reported or now < self._reported_at + REPORT_EVERY * heartbeat:
            return
        # Code without a loop, which begins work by ``working``, may be idle as long as there is no work.
        is_expected = in_hand or self._has_loop is not False
        moment = DbLater(self._last_activity_at - now) if is_expected else None
        rows.update(last_activity_at=moment, in_hand=in_hand)
        self._reported, self._reported_at = state, now
