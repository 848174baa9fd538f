"""The resources that are to be checked now."""

import datetime
import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import Q

from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater, DbNow
from resourcepool.events import say
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.registry import everything
from resourcepool.resources.state import State, Verdict, state_of

OURS = "check"  # the code of the reason of a quarantine by a check
WHY_NOT = {
    State.FREE: say("busy_for_a_moment"),
    State.LEASED: say("in_use"),
    State.COOLING: say("cooling"),
    State.QUARANTINED: say("not_quarantined_by_check"),
    State.DRAINING: say("in_use"),
    State.OUT: say("out_of_service"),
    State.RESERVED: say("reserved"),
    State.RETIRED: say("retired"),
}


@dataclass(frozen=True, slots=True)
class DueResource:
    """A resource that nobody held a moment ago.

    Attributes:
        holder: whose lease ran out without being released; "" nobody's.
        is_parked: it is in quarantine; ``is_theirs``: by an operator or a crawler, not by a check.
        was_bad: the last check found it bad, or it is in quarantine.
        until: the end of that quarantine, which tells it from a later one.
    """

    pk: Any
    fence: int
    holder: str
    is_parked: bool
    is_theirs: bool
    was_bad: bool
    until: datetime.datetime | None = None


def due(
    model: Any, pks: Collection[Any] | None, *, every_quarantine: bool, unless_within: float
) -> list[DueResource]:
    """Return the resources that can be checked, free or in quarantine, in random order: each part is a fair sample.

    Args:
        pks: only these; None: all.
        every_quarantine: also quarantines by operators and crawlers, not only by checks.
        unless_within: without resources that were checked within the last so many seconds.
    """
    rows = ResourceQuerySet(model=model, using=model.pool.using)
    if pks is not None:
        rows = rows.filter(pk__in=pks)
    if unless_within:
        rows = rows.filter(Q(checked_at=None) | Q(checked_at__lte=DbLater(-unless_within)))
    parked = rows.quarantined()
    if not every_quarantine:
        parked = parked.filter(reason__code=OURS)
    found = [*_read(rows.available(), is_parked=False), *_read(parked, is_parked=True)]
    random.shuffle(found)
    return found


def why_not(model: Any, pks: Collection[Any]) -> dict[Any, str]:
    """Return {primary key: why it cannot be checked now}."""
    rows = everything(model).filter(pk__in=pks).annotate(db_now=DbNow())
    read = retrying(connections[model.pool.using], lambda: list(rows.all()))
    states = {row.pk: state_of(row, row.db_now) for row in read}
    return {pk: WHY_NOT[states[pk]] if pk in states else say("not_there") for pk in pks}


def _read(rows: ResourceQuerySet, *, is_parked: bool) -> list[DueResource]:
    columns = rows.values_list("pk", "fence", "holder", "reason", "verdict", "until")
    read = retrying(connections[rows.db], lambda: list(columns.all()))
    return [
        DueResource(
            pk,
            fence,
            holder,
            is_parked,
            is_theirs=is_parked and getattr(reason, "code", "") != OURS,
            was_bad=is_parked or verdict == Verdict.BAD,
            until=until,
        )
        for pk, fence, holder, reason, verdict, until in read
    ]
