"""Leases that were reported as leaked, until they end or an operator acknowledges the leak."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db import connections
from django.db.models import Count, Exists, OuterRef, Q

from resourcepool.database.retry import retrying
from resourcepool.history.models import MAX_ROW, Event, EventQuerySet, storable
from resourcepool.signals import EventKind, RowEvent, emit

HOUR = 3_600.0  # seconds
MOST = 10  # of one lease

_OVER = (
    EventKind.RELEASED,
    EventKind.HANDED_OVER,
    EventKind.LOST,
    EventKind.EXPIRED,
    EventKind.REVOKED,
    EventKind.FIXED,
    EventKind.ACKNOWLEDGED,
)


def open_leaks(labels: Collection[str]) -> dict[str, int]:
    """Return {pool: how many of its leases are open leaks}, in one query; pools without any are left out."""
    names = {label.lower(): label for label in labels}
    counts = _open(names).order_by().values_list("pool").annotate(Count("row", distinct=True))
    return {names[pool]: count for pool, count in retrying(connections[counts.db], lambda: list(counts.all()))}


def are_leaks(model: Any, grants: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Return the open leaks among ``grants``: (primary key, fence) of each."""
    named = {(storable(pk, MAX_ROW), fence): (pk, fence) for pk, fence in grants}
    of_these = _open([model._meta.label_lower]).filter(row__in={row for row, _ in named})
    found = retrying(connections[of_these.db], lambda: set(of_these.values_list("row", "fence").all()))
    return [grant for name, grant in named.items() if name in found]


def leak_events(row: Any) -> list[Event]:
    """Return the reports and acknowledgements of a leak of the running lease of ``row``."""
    events = (
        Event.objects.of(row)
        .filter(fence=row.fence, what__in=(EventKind.LEAKED, EventKind.ACKNOWLEDGED))
        .order_by("pk")
    )
    return retrying(connections[events.db], lambda: list(events.all()[:MOST]))


def acknowledge(rows: Any, reason: str, actor: str) -> int:
    """Acknowledge the leaks of ``rows`` in the history; returns how many. The leases do not change."""
    holders = {(pk, fence): holder for pk, fence, holder in rows.values_list("pk", "fence", "holder")}
    known = are_leaks(rows.model, holders)
    for pk, fence in known:
        about = {"pk": pk, "fence": fence, "holder": holders[pk, fence]}
        emit(RowEvent(EventKind.ACKNOWLEDGED, rows.model, rows.db, reason=reason, actor=actor, **about))
    return len(known)


def _open(pools: Iterable[str]) -> EventQuerySet:
    """Return the reports of the last hour about leases that have not ended since."""
    since = Event.objects.filter(pool=OuterRef("pool"), row=OuterRef("row"))
    # Only a quarantine by the holder ends the lease, and only that one has ``seconds``.
    ended = Q(what__in=_OVER) | Q(what=EventKind.QUARANTINED, seconds__isnull=False)
    over = since.filter(Q(fence__gt=OuterRef("fence")) | Q(ended, fence=OuterRef("fence")))
    reports: EventQuerySet = Event.objects.filter(what=EventKind.LEAKED, pool__in=list(pools)).since(HOUR)
    return reports.filter(~Exists(over))
