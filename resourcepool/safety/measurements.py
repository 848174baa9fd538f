"""Measures round trips, clock difference and commits of a database, and counts leases and tickets."""

import contextlib
import datetime
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.retry import retrying
from resourcepool.leases import verbs
from resourcepool.leases.models import Model
from resourcepool.leases.terms import default_holder
from resourcepool.waiting.models import Ticket

ROUND_TRIPS = 20
COMMITS = 200
MAX_SECONDS = 2.0  # seconds of commits
TICKET_TTL = 60.0  # seconds; for the ticket of a killed measurement
ORPHANED_AFTER = 60.0  # seconds after which an expired ticket should have been removed
POOL = "resourcepool.doctor"  # not the label of a model, so it has no waiters


class ClockReading(NamedTuple):
    """One reading of the server's clock, between two of this host's; in seconds since 1970."""

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
        expired: not released, so the holders crashed or hung; free for the next claim.
    """

    model: str
    live: int
    expired: int


@dataclass(frozen=True, slots=True)
class Tickets:
    """The number of waiters, and of tickets left behind by crashed processes."""

    live: int
    orphaned: int


def distance(readings: Sequence[ClockReading], step: float = 0.0) -> Distance:
    """Return the distance; the quickest reading has the smallest clock error (Cristian, 1989)."""
    quickest = min(readings, key=lambda reading: reading.received - reading.sent)
    return Distance(
        round_trip=median(reading.received - reading.sent for reading in readings),
        offset=quickest.server - (quickest.sent + quickest.received) / 2,
        offset_error=(quickest.received - quickest.sent) / 2 + step,
    )


def summarize(seconds: Sequence[float]) -> Commits:
    """Return count, median and 99th percentile."""
    ordered = sorted(seconds)
    return Commits(len(ordered), median(ordered), ordered[(len(ordered) * 99 - 1) // 100])


def measure_distance(connection: BaseDatabaseWrapper, count: int = ROUND_TRIPS) -> Distance:
    """Read the server's clock ``count`` times."""
    db_dialect, readings = dialect.of(connection), []
    sql = f"SELECT {db_dialect.now}"
    with connection.cursor() as cursor:
        for _ in range(count):
            sent = time.time()
            cursor.execute(sql, ())
            (moment,) = cursor.fetchone()
            readings.append(ClockReading(sent, _seconds(moment), time.time()))
    return distance(readings, db_dialect.clock_step)


def commits(connection: BaseDatabaseWrapper, count: int = COMMITS, within: float = MAX_SECONDS) -> Commits:
    """Renew a temporary ticket ``count`` times, or for ``within`` seconds, and time the commits."""
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
    """Create a ticket; at the end remove it, and those of killed measurements."""
    alias, holder = connection.alias, default_holder()
    tickets = verbs.rows_of(connection, Ticket).filter(pool=POOL)
    try:
        ticket = tickets.create(
            busy_before=DbLater(TICKET_TTL), fence=1, holder=holder, pool=POOL, asked_at=DbNow()
        )
        yield ticket.pk
    except BaseException:
        dialect.close_quietly(connection)  # a reply may still be on its way
        raise
    finally:
        # By key: the same lock order as waiters that remove tickets.
        mine_or_left = tickets.filter(Q(holder=holder) | Q(busy_before__lte=DbNow()))
        pks = retrying(connection, lambda: list(mine_or_left.values_list("pk", flat=True)))
        if pks:
            retrying(connection, lambda: tickets.filter(pk__in=pks)._raw_delete(alias))


def _seconds(moment: Any) -> float:
    if isinstance(moment, str):
        moment = datetime.datetime.fromisoformat(moment)
    return float((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp())
