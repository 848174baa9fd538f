"""What the pools did lately: recent events, counted in the history, and their state once a minute."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Count, Q
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from resourcepool.dialect import DbLater, MicrosUntil
from resourcepool.history.models import ACQUISITION, Event, Sample
from resourcepool.signals import What
from resourcepool.status.reading import fetched

MINUTE, HOUR = 60.0, 3_600.0  # seconds
SAMPLED_EVERY = 60_000_000  # microseconds
RARE = (What.LOST, What.EXPIRED, What.FREED, What.LEAKED)


@dataclass(frozen=True, slots=True)
class Happenings:
    """Leases acquired within the last minute; lost, expired, freed and leaked within the last hour."""

    acquired: int = 0
    lost: int = 0
    expired: int = 0
    freed: int = 0
    leaked: int = 0


def happenings(labels: Iterable[str]) -> dict[str, Happenings]:
    """Return {pool in lower case: its recent events}, in one query, without pools that had none."""
    minute = ACQUISITION & Q(at__gt=DbLater(-MINUTE))
    hour = Q(what__in=RARE, at__gt=DbLater(-HOUR))
    events = Event.objects.filter(minute | hour, pool__in=[label.lower() for label in labels]).order_by()
    counts = events.values_list("pool", "what").annotate(Count("pk"))
    found: dict[str, dict[str, int]] = {}
    for pool, what, count in fetched(counts):
        those = found.setdefault(pool, {})
        name = what if what in RARE else "acquired"  # or a short lease's end, which stands for it
        those[name] = those.get(name, 0) + count
    return {pool: Happenings(**those) for pool, those in found.items()}


class Span(StrEnum):
    """How far back a chart reaches; the value is used in URLs."""

    QUARTER = "15m"
    HOUR = "1h"
    DAY = "24h"

    @property
    def minutes(self) -> int:
        """Its length."""
        return {"15m": 15, "1h": 60, "24h": 1_440}[self.value]

    @property
    def step(self) -> int:
        """How many minutes one point covers."""
        return {"15m": 1, "1h": 1, "24h": 15}[self.value]

    @property
    def label(self) -> Promise:
        """Its name for people."""
        return {"15m": _("15 minutes"), "1h": _("1 hour"), "24h": _("24 hours")}[self.value]


@dataclass(frozen=True, slots=True)
class Point:
    """The state of a pool in the minutes of one point.

    Attributes:
        leased, capacity: at the busiest moment: how many were leased, and how many were leased or free.
        waiters: the maximum; acquired, lost: per minute on average, and in total; None: not counted.
    """

    leased: int
    capacity: int
    waiters: int
    acquired: float | None
    lost: int | None


# Minutes ago, free, leased, waiters, acquired, lost.
Row = tuple[int, int, int, int, int, int]


def trends(labels: Iterable[str], span: Span) -> dict[str, list[Point | None]]:
    """Return {pool in lower case: its points, the oldest first; None without samples}, in one query."""
    pools = [label.lower() for label in labels]
    samples = Sample.objects.filter(pool__in=pools, minute__gt=DbLater(-60.0 * (span.minutes + 2)))
    columns = ("pool", MicrosUntil("minute"), "free", "leased", "waiters", "acquired", "lost")
    found: dict[str, list[Row]] = {pool: [] for pool in pools}
    for pool, until, *rest in samples.order_by().values_list(*columns):
        # A sample is of a completed minute: the latest is between one and two minutes old, and counts as "now".
        found[pool].append((max(0, -until // SAMPLED_EVERY - 1), *rest))
    return {pool: fold(rows, span) for pool, rows in found.items()}


def up_to_now(points: Sequence[Point | None], now: Point, span: Span) -> list[Point | None]:
    """End the points with the state ``now``, unless a point covers many minutes."""
    return [*points[1:], now] if span.step == 1 else list(points)


def fold(rows: Sequence[Row], span: Span) -> list[Point | None]:
    """Combine samples into the points of ``span``."""
    steps: dict[int, list[Row]] = {}
    for row in rows:
        if row[0] < span.minutes:
            steps.setdefault(row[0] // span.step, []).append(row)
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
