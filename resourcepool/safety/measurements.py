"""Measures round trips, the clock difference and commits of a database, and counts leases and tickets."""

import contextlib
import datetime
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from resourcepool import dialect
from resourcepool.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater, DbNow
from resourcepool.leases import verbs
from resourcepool.leases.table import Model
from resourcepool.leases.terms import default_holder
from resourcepool.waiting.models import Ticket

ROUND_TRIPS = 20
COMMITS = 200
MAX_SECONDS = 2.0  # seconds of commits
TICKET_TTL = 60.0  # seconds after which the ticket of a killed measurement lapses
ORPHANED_AFTER = 60.0  # seconds after which an expired ticket should have been removed
POOL = "resourcepool.doctor"  # no model has this label, so nobody waits here


class ClockReading(NamedTuple):
    """One reading of the server's clock; all in seconds since 1970, each by the clock that was read."""

    sent: float
    server: float
    received: float


@dataclass(frozen=True, slots=True)
class Distance:
    """Times in seconds.

    Attributes:
        round_trip: the median.
        offset: how far the server's clock is ahead of this host's.
        offset_error: its largest error: half the quickest round trip, and a step of the server's clock.
    """

    round_trip: float
    offset: float
    offset_error: float


@dataclass(frozen=True, slots=True)
class Commits:
    """How long durable commits of one row took, in seconds."""

    count: int
    median: float
    p99: float


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases on the rows of one model.

    Attributes:
        live: running.
        expired: ran out without a release, so the holders died or hung; free for the next claim.
    """

    model: str
    live: int
    expired: int


@dataclass(frozen=True, slots=True)
class Tickets:
    """The number of waiters, and of tickets that dead processes left behind."""

    live: int
    orphaned: int


def distance(answers: Sequence[ClockReading], step: float = 0.0) -> Distance:
    """Return the distance; the quickest answer is the most exact about the clock (Cristian, 1989)."""
    quickest = min(answers, key=lambda answer: answer.received - answer.sent)
    return Distance(
        round_trip=median(answer.received - answer.sent for answer in answers),
        offset=quickest.server - (quickest.sent + quickest.received) / 2,
        offset_error=(quickest.received - quickest.sent) / 2 + step,
    )


def summarize(seconds: Sequence[float]) -> Commits:
    """Return count, median and 99th percentile."""
    in_order = sorted(seconds)
    return Commits(len(in_order), median(in_order), in_order[(len(in_order) * 99 - 1) // 100])


def measure_distance(connection: BaseDatabaseWrapper, count: int = ROUND_TRIPS) -> Distance:
    """Ask the server for the time, ``count`` times."""
    db_dialect, asked = dialect.of(connection), []
    sql = f"SELECT {db_dialect.now}"
    with connection.cursor() as cursor:
        for _ in range(count):
            sent = time.time()
            cursor.execute(sql, ())
            (moment,) = cursor.fetchone()
            asked.append(ClockReading(sent, _seconds(moment), time.time()))
    return distance(asked, db_dialect.clock_step)


def commits(connection: BaseDatabaseWrapper, count: int = COMMITS, within: float = MAX_SECONDS) -> Commits:
    """Renew a ticket of our own ``count`` times, or for ``within`` seconds, and time the commits."""
    times: list[float] = []
    with _own_ticket(connection) as pk:
        ends_at = monotonic() + within
        while len(times) < count and (not times or monotonic() < ends_at):
            began_at = monotonic()
            verbs.renew(connection, Ticket, [(pk, 1)], TICKET_TTL + len(times) / 100)  # always a change
            times.append(monotonic() - began_at)
    return summarize(times)


def leases(connection: BaseDatabaseWrapper, leased: Sequence[Model]) -> list[Leases]:
    """Count the leases of each of these models except Ticket."""
    return [
        Leases(model._meta.label, rows.held().count(), rows.expired().count())
        for model in leased
        if model is not Ticket
        for rows in [verbs.rows_of(connection, model)]
    ]


def tickets(connection: BaseDatabaseWrapper) -> Tickets:
    """Count the waiters of all pools together."""
    rows = Ticket.objects.using(connection.alias)
    return Tickets(rows.waiting().count(), rows.filter(busy_before__lt=DbLater(-ORPHANED_AFTER)).count())


@contextlib.contextmanager
def _own_ticket(connection: BaseDatabaseWrapper) -> Iterator[Any]:
    """Make a ticket; remove it at the end, and those of killed measurements, too."""
    alias, holder = connection.alias, default_holder()
    tickets = verbs.rows_of(connection, Ticket).filter(pool=POOL)
    try:
        ticket = tickets.create(
            busy_before=DbLater(TICKET_TTL), fence=1, holder=holder, pool=POOL, asked_at=DbNow()
        )
        yield ticket.pk
    except BaseException:
        dialect.close_quietly(connection)  # it may be in the middle of a reply
        raise
    finally:
        # By key: waiters that remove tickets lock them in the same order.
        mine_or_left = tickets.filter(Q(holder=holder) | Q(busy_before__lte=DbNow()))
        pks = retrying(connection, lambda: list(mine_or_left.values_list("pk", flat=True)))
        if pks:
            retrying(connection, lambda: tickets.filter(pk__in=pks)._raw_delete(alias))


def _seconds(moment: Any) -> float:
    if isinstance(moment, str):
        moment = datetime.datetime.fromisoformat(moment)
    return float((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp())
