"""How long a lease was held that an operator ended, or that ran out; found in the history."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

from django.db import connections, router

from resourcepool.database.retry import retrying
from resourcepool.dialect import MicrosUntil
from resourcepool.history.models import MAX_ROW, Event, storable
from resourcepool.signals import EventKind, RowEvent, is_recorded

Grant = tuple[str, str, int]  # pool, row, fence


def grant(event: RowEvent) -> Grant:
    """Return the grant of ``event``, as events name it."""
    return _named(event.model, event.pk, event.fence)


def held(events: Iterable[RowEvent], now: float, using: str) -> dict[Grant, float]:
    """Return {grant: how many seconds it lasted} of the freed leases, as far as the history knows.

    Args:
        now: by the process's own clock, as in ``RowEvent.at``.
    """
    events, ended = list(events), EventKind.REVOKED
    freed = {grant(event): event.at for event in events if event.kind is ended}
    if not freed:
        return {}
    just_begun = {grant(one): now - one.at for one in events if one.kind is EventKind.ACQUIRED}
    ages = _ages(list(freed), using) | just_begun
    return {one: max(0.0, ages[one] - (now - at)) for one, at in freed.items() if one in ages}


def expired_durations(model: Any, leases: Collection[tuple[Any, int, float]]) -> dict[tuple[Any, int], float]:
    """Return {(primary key, fence): how many seconds it lasted} of leases that ran out, as far as it is known.

    Args:
        leases: (primary key, fence, how many seconds ago it ran out) of each.
    """
    if not leases or not is_recorded(model):
        return {}
    names = {(pk, fence): _named(model, pk, fence) for pk, fence, _ in leases}
    using = router.db_for_write(Event)
    ages = retrying(connections[using], partial(_ages, list(names.values()), using))
    ago = {(pk, fence): seconds for pk, fence, seconds in leases}
    return {one: max(0.0, ages[name] - ago[one]) for one, name in names.items() if name in ages}


def _named(model: Any, pk: Any, fence: int) -> Grant:
    return model._meta.label_lower, storable(pk, MAX_ROW), fence


def _ages(grants: Sequence[Grant], using: str) -> dict[Grant, float]:
    """Return {grant: how many seconds ago it began} of grants with an event of acquisition, in one query."""
    pools, rows, fences = (set(column) for column in zip(*grants, strict=True))
    begun: Any = Event.objects.using(using).filter(
        pool__in=pools, row__in=rows, fence__in=fences, what=EventKind.ACQUIRED
    )
    found = begun.values_list("pool", "row", "fence", MicrosUntil("at"))
    return {(pool, row, fence): -micros / 1_000_000 for pool, row, fence, micros in found}
