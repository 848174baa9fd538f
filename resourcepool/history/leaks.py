"""Open leaks: leases reported as leaked that have not ended, and that no operator has acknowledged."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db import connections
from django.db.models import Count, Exists, OuterRef, Q

from resourcepool.db.retry import retrying
from resourcepool.history.models import MAX_ROW, Event, EventQuerySet, storable
from resourcepool.signals import EventKind, RowEvent, emit

HOUR = 3_600.0  # seconds
MAX_EVENTS = 10  # of one lease

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
    """Return {pool: number of open leaks}, in one query, without pools that have none."""
    names = {label.lower(): label for label in labels}
    counts = _open(names).order_by().values_list("pool").annotate(Count("row", distinct=True))
    return {names[pool]: count for pool, count in retrying(connections[counts.db], lambda: list(counts.all()))}


def select_open_leaks(model: Any, grants: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Return those of ``grants``, as (primary key, fence), that are open leaks."""
    by_stored_key = {(storable(pk, MAX_ROW), fence): (pk, fence) for pk, fence in grants}
    of_these = _open([model._meta.label_lower]).filter(row__in={row for row, _ in by_stored_key})
    leaked = retrying(connections[of_these.db], lambda: set(of_these.values_list("row", "fence").all()))
    return [grant for name, grant in by_stored_key.items() if name in leaked]


def leak_events(row: Any) -> list[Event]:
    """Return the reports and acknowledgements of a leak of the current lease of ``row``."""
    events = (
        Event.objects.of(row)
        .filter(fence=row.fence, what__in=(EventKind.LEAKED, EventKind.ACKNOWLEDGED))
        .order_by("pk")
    )
    return retrying(connections[events.db], lambda: list(events.all()[:MAX_EVENTS]))


def acknowledge(rows: Any, reason: str, actor: str) -> int:
    """Acknowledge the open leaks of ``rows`` in the history; returns their number. The leases do not change."""
    holders = {(pk, fence): holder for pk, fence, holder in rows.values_list("pk", "fence", "holder")}
    known = select_open_leaks(rows.model, holders)
    for pk, fence in known:
        about = {"pk": pk, "fence": fence, "holder": holders[pk, fence]}
        emit(RowEvent(EventKind.ACKNOWLEDGED, rows.model, rows.db, reason=reason, actor=actor, **about))
    return len(known)


def _open(pools: Iterable[str]) -> EventQuerySet:
    """Return the leak reports of the last hour whose leases have not ended since."""
    since = Event.objects.filter(pool=OuterRef("pool"), row=OuterRef("row"))
    # A quarantine by the holder ends the lease; only that kind has ``seconds``.
    ended = Q(what__in=_OVER) | Q(what=EventKind.QUARANTINED, seconds__isnull=False)
    over = since.filter(Q(fence__gt=OuterRef("fence")) | Q(ended, fence=OuterRef("fence")))
    reports: EventQuerySet = Event.objects.filter(what=EventKind.LEAKED, pool__in=list(pools)).since(HOUR)
    return reports.filter(~Exists(over))
