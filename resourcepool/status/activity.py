"""Recent events of each pool, counted in the history."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Q

from resourcepool.dialect import DbLater
from resourcepool.history.models import ACQUISITION, Event
from resourcepool.signals import What
from resourcepool.status.reading import fetched

MINUTE, HOUR = 60.0, 3_600.0  # seconds
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
