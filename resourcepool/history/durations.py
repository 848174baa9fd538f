"""How long a revoked or expired lease was held, read from the history."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

from django.db import connections, router

from resourcepool.db.dialect import MicrosUntil
from resourcepool.db.retry import retrying
from resourcepool.history.models import MAX_ROW, Event, storable
from resourcepool.signals import EventKind, RowEvent, is_recorded

Grant = tuple[str, str, int]  # pool, row, fence


def grant_key(event: RowEvent) -> Grant:
    """Return the key of the grant of ``event``."""
    return _named(event.model, event.pk, event.fence)


def revoked_durations(events: Iterable[RowEvent], now: float, using: str) -> dict[Grant, float]:
    """Return {grant: seconds it was held} of the revoked leases whose start is in the history.

    Args:
        now: by this process's clock, as in ``RowEvent.at``.
    """
    events, ended = list(events), EventKind.REVOKED
    revoked = {grant_key(event): event.at for event in events if event.kind is ended}
    if not revoked:
        return {}
    just_begun = {grant_key(event): now - event.at for event in events if event.kind is EventKind.ACQUIRED}
    ages = _ages(list(revoked), using) | just_begun
    return {key: max(0.0, ages[key] - (now - at)) for key, at in revoked.items() if key in ages}


def expired_durations(model: Any, leases: Collection[tuple[Any, int, float]]) -> dict[tuple[Any, int], float]:
    """Return {(primary key, fence): seconds it was held} of expired leases whose start is in the history.

    Args:
        leases: (primary key, fence, seconds since it expired) of each.
    """
    if not leases or not is_recorded(model):
        return {}
    names = {(pk, fence): _named(model, pk, fence) for pk, fence, _ in leases}
    using = router.db_for_write(Event)
    ages = retrying(connections[using], partial(_ages, list(names.values()), using))
    ago = {(pk, fence): seconds for pk, fence, seconds in leases}
    return {key: max(0.0, ages[name] - ago[key]) for key, name in names.items() if name in ages}


def _named(model: Any, pk: Any, fence: int) -> Grant:
    return model._meta.label_lower, storable(pk, MAX_ROW), fence


def _ages(grants: Sequence[Grant], using: str) -> dict[Grant, float]:
    """Return {grant: seconds since it began} of grants with an event of acquisition, in one query."""
    pools, rows, fences = (set(column) for column in zip(*grants, strict=True))
    begun: Any = Event.objects.using(using).filter(
        pool__in=pools, row__in=rows, fence__in=fences, what=EventKind.ACQUIRED
    )
    starts = begun.values_list("pool", "row", "fence", MicrosUntil("at"))
    return {(pool, row, fence): -micros / 1_000_000 for pool, row, fence, micros in starts}
