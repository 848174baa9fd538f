"""Recent activity of the pools: counts of events, and samples of each pool's state once a minute."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import Count, Q
from django.utils.functional import Promise

from resourcepool.db.dialect import DbLater, MicrosUntil
from resourcepool.history.models import ACQUISITION, Event, Sample
from resourcepool.signals import EventKind
from resourcepool.status.snapshots import fetch_all
from resourcepool.translation import gettext_lazy as _

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
        acquired: average per minute; None: not counted.
        lost: total; None: not counted.
    """

    leased: int
    capacity: int
    waiters: int
    acquired: float | None
    lost: int | None


# Minutes ago, free, leased, waiters, acquired, lost.
Row = tuple[int, int, int, int, int, int]


def trends(labels: Iterable[str], span: ChartRange) -> dict[str, list[Point | None]]:
    """Return {pool in lower case: its points, the oldest first; None without samples}, in one query."""
    pools = [label.lower() for label in labels]
    samples = Sample.objects.filter(pool__in=pools, minute__gt=DbLater(-60.0 * (span.minutes + 2)))
    columns = ("pool", MicrosUntil("minute"), "free", "leased", "waiters", "acquired", "lost")
    rows_of: dict[str, list[Row]] = {pool: [] for pool in pools}
    for pool, until, *rest in samples.order_by().values_list(*columns):
        # A sample is of a completed minute; the latest one is up to two minutes old and counts as "now".
        rows_of[pool].append((max(0, -until // SAMPLED_EVERY - 1), *rest))
    return {pool: fold(rows, span) for pool, rows in rows_of.items()}


def sampled(labels: Iterable[str], span: ChartRange) -> set[str]:
    """Return the pools, in lower case, that have samples in ``span``, in one query."""
    pools = [label.lower() for label in labels]
    samples = Sample.objects.filter(pool__in=pools, minute__gt=DbLater(-60.0 * (span.minutes + 2)))
    return set(fetch_all(samples.order_by().values_list("pool", flat=True).distinct()))


def up_to_now(points: Sequence[Point | None], now: Point, span: ChartRange) -> list[Point | None]:
    """End the points with the state ``now``, unless a point covers many minutes."""
    return [*points[1:], now] if span.step == 1 else list(points)


def fold(rows: Sequence[Row], span: ChartRange) -> list[Point | None]:
    """Combine samples into the points of ``span``, the oldest first; None without samples."""
    steps: dict[int, list[Row]] = {}
    for row in rows:
        if (minutes_ago := row[0]) < span.minutes:
            steps.setdefault(minutes_ago // span.step, []).append(row)
    return [_point(steps.get(step, ())) for step in reversed(range(span.minutes // span.step))]


def _point(rows: Sequence[Row]) -> Point | None:
    if not rows:
        return None
    _ago, free, leased, _waiters, _acquired, _lost = max(rows, key=lambda row: row[2])
    return Point(
        leased=leased,
        capacity=free + leased,
        waiters=max(row[3] for row in rows),
        acquired=sum(row[4] for row in rows) / len(rows),
        lost=sum(row[5] for row in rows),
    )
