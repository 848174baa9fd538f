"""What the dashboard shows of a pool: a cell for each resource, recent events, samples of its state once a minute."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import connections
from django.db.models import Count, DateTimeField, FloatField, Q, Subquery, Value
from django.utils.functional import Promise

from resourcepool.db.dialect import DbLater, DbNow, MicrosUntil
from resourcepool.history.models import ACQUISITION, Event, Sample
from resourcepool.leases import verbs
from resourcepool.resources.state import State, state_details
from resourcepool.signals import EventKind
from resourcepool.status.resources.holders import acquisition_of_outer_row, renewal, shares_history_database
from resourcepool.status.snapshots import fetch_all
from resourcepool.translation import gettext_lazy as _

MAX_CELLS = 1_000  # of one pool


@dataclass(frozen=True, slots=True)
class Cell:
    """One resource; times in seconds.

    Attributes:
        pk: its primary key as text.
        name: without secrets.
        note: the holder if it is leased; otherwise the reason for its status.
        held: since it was leased, by the history; None: unknown.
        ends: until the lease, cool-down or quarantine ends, unless renewed; None without one.
        is_overdue: whether its holder should have renewed its lease by now, by the history.
    """

    pk: str
    name: str
    state: State
    note: str
    held: float | None
    ends: float | None
    is_overdue: bool = False


def cells_of(model: Any) -> list[Cell]:
    """Return a cell for each resource of a pool, in the order of their keys, in one query.

    It reads every row: use it only for pools of up to ``MAX_CELLS``.
    """
    rows = verbs.rows_of(connections[model.pool.using], model).annotate(
        db_now=DbNow(),
        db_since=_of_acquisition(model, "at", DateTimeField()),
        db_ttl=_of_acquisition(model, "ttl", FloatField()),
    )
    return [_cell(row) for row in fetch_all(rows.order_by("pk")[:MAX_CELLS])]


def _of_acquisition(model: Any, column: str, field: Any) -> Any:
    """Return the expression of a column of the event of its acquisition; NULL if that is in another database."""
    if not shares_history_database(model):
        return Value(None, field)
    return Subquery(acquisition_of_outer_row(model).values(column)[:1])


def _cell(row: Any) -> Cell:
    now, details = row.db_now, state_details(row, row.db_now)
    state = details.state
    is_held = state in (State.LEASED, State.DRAINING)
    # Quarantined while leased, and the lease has ended.
    ends_at_until = state is State.QUARANTINED and not row.in_service and row.until is not None
    ends = ((row.until if ends_at_until else row.busy_before) - now).total_seconds()
    last = renewal(row.db_ttl, ends) if is_held else None
    return Cell(
        pk=str(row.pk),
        name=str(row),
        state=state,
        note=row.holder if is_held else "" if state is State.FREE else details.reason,
        held=max(0.0, (now - row.db_since).total_seconds()) if row.db_since and is_held else None,
        ends=ends if ends > 0 else None,
        is_overdue=last is not None and last.is_overdue,
    )


MINUTE, HOUR = 60.0, 3_600.0  # seconds
SAMPLED_EVERY = 60_000_000  # microseconds
RARE = (EventKind.LOST, EventKind.EXPIRED, EventKind.REVOKED, EventKind.LEAKED)


@dataclass(frozen=True, slots=True)
class RecentEvents:
    """Leases acquired within the last minute; lost, expired, revoked and leaked within the last hour."""

    acquired: int = 0
    lost: int = 0
    expired: int = 0
    revoked: int = 0
    leaked: int = 0


def recent_events(labels: Iterable[str]) -> dict[str, RecentEvents]:
    """Return {pool in lower case: its recent events} for pools with any, in one query."""
    minute = ACQUISITION & Q(at__gt=DbLater(-MINUTE))
    hour = Q(what__in=RARE, at__gt=DbLater(-HOUR))
    events = Event.objects.filter(minute | hour, pool__in=[label.lower() for label in labels]).order_by()
    counts = events.values_list("pool", "what").annotate(Count("pk"))
    by_pool: dict[str, Counter[str]] = defaultdict(Counter)
    for pool, what, count in fetch_all(counts):
        # The end of a short lease also counts as its acquisition.
        by_pool[pool][what if what in RARE else "acquired"] += count
    return {pool: RecentEvents(**counted) for pool, counted in by_pool.items()}


class ChartRange(StrEnum):
    """The period that a chart shows; the value is used in URLs.

    Attributes:
        minutes: its length; ``step``: minutes per point.
        label: its name for users.
    """

    QUARTER = "15m", 15, 1, _("15 minutes")
    HOUR = "1h", 60, 1, _("1 hour")
    DAY = "24h", 1_440, 15, _("24 hours")

    minutes: int
    step: int
    label: Promise

    def __new__(cls, value: str, *about: Any) -> "ChartRange":
        self = str.__new__(cls, value)
        self._value_, (self.minutes, self.step, self.label) = value, about
        return self


@dataclass(frozen=True, slots=True)
class Point:
    """The state of a pool in the minutes of one point.

    Attributes:
        leased, capacity: resources that were leased, and leased or free, in the busiest minute.
        waiters: the maximum.
        acquired: average per minute. ``lost``: total.
    """

    leased: int
    capacity: int
    waiters: int
    acquired: float
    lost: int


def trend(label: str, span: ChartRange) -> list[Point | None]:
    """Return the points of a pool, the oldest first; None without samples."""
    steps: dict[int, list[Any]] = defaultdict(list)
    for sample in fetch_all(_samples([label], span).annotate(until=MicrosUntil("minute"))):
        # A sample is of a completed minute; the latest one is up to two minutes old and counts as "now".
        minutes = max(0, -sample.until // SAMPLED_EVERY - 1)
        steps[minutes // span.step].append(sample)
    return [_point(steps.get(step, ())) for step in reversed(range(span.minutes // span.step))]


def sampled(labels: Iterable[str], span: ChartRange) -> set[str]:
    """Return the pools, in lower case, that have samples in ``span``, in one query."""
    return set(fetch_all(_samples(labels, span).values_list("pool", flat=True).distinct()))


def _samples(labels: Iterable[str], span: ChartRange) -> Any:
    pools = [label.lower() for label in labels]
    since = DbLater(-60.0 * (span.minutes + 2))
    return Sample.objects.filter(pool__in=pools, minute__gt=since).order_by()


def _point(samples: Sequence[Any]) -> Point | None:
    if not samples:
        return None
    busiest = max(samples, key=lambda sample: sample.leased)
    return Point(
        leased=busiest.leased,
        capacity=busiest.free + busiest.leased,
        waiters=max(sample.waiters for sample in samples),
        acquired=sum(sample.acquired for sample in samples) / len(samples),
        lost=sum(sample.lost for sample in samples),
    )
