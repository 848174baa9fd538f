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
