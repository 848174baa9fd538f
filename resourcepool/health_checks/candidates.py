"""Selects the resources to check, and explains why others are skipped."""

import datetime
import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import Q

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.retry import retrying
from resourcepool.events import sentence_for
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.registry import all_resources
from resourcepool.resources.state import State, Verdict, state_of

CHECK_REASON = "check"  # the code of the reason in quarantines set by a check
SKIP_REASONS = {
    State.FREE: sentence_for("busy_for_a_moment"),
    State.LEASED: sentence_for("in_use"),
    State.COOLING: sentence_for("cooling"),
    State.QUARANTINED: sentence_for("not_quarantined_by_check"),
    State.DRAINING: sentence_for("in_use"),
    State.OUT: sentence_for("out_of_service"),
    State.RESERVED: sentence_for("reserved"),
    State.RETIRED: sentence_for("retired"),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A resource that was not held when it was read.

    Attributes:
        holder: the holder of an expired lease that was not released; "": none.
        is_quarantined: it is in quarantine.
        is_quarantined_by_others: the quarantine was set by an operator or a crawler, not by a check.
        was_bad: the last check found it bad, or it is in quarantine.
        until: the end of the quarantine, to distinguish it from a later one.
    """

    pk: Any
    fence: int
    holder: str
    is_quarantined: bool
    is_quarantined_by_others: bool
    was_bad: bool
    until: datetime.datetime | None = None


def find_candidates(
    model: Any, pks: Collection[Any] | None, *, any_quarantine: bool, skip_checked_within: float
) -> list[Candidate]:
    """Return free and quarantined resources to check, in random order, so that each batch is a fair sample.

    Args:
        pks: only these; None: all.
        any_quarantine: also resources quarantined by operators and crawlers, not only by checks.
        skip_checked_within: skip resources that were checked within this many seconds.
    """
    rows = ResourceQuerySet(model=model, using=model.pool.using)
    if pks is not None:
        rows = rows.filter(pk__in=pks)
    if skip_checked_within:
        rows = rows.filter(Q(checked_at=None) | Q(checked_at__lte=DbLater(-skip_checked_within)))
    quarantined = rows.quarantined()
    if not any_quarantine:
        quarantined = quarantined.filter(reason__code=CHECK_REASON)
    candidates = [*_read(rows.available(), is_quarantined=False), *_read(quarantined, is_quarantined=True)]
    random.shuffle(candidates)
    return candidates


def skip_reasons(model: Any, pks: Collection[Any]) -> dict[Any, str]:
    """Return {primary key: the reason why it cannot be checked now}."""
    rows = all_resources(model).filter(pk__in=pks).annotate(db_now=DbNow())
    read = retrying(connections[model.pool.using], lambda: list(rows.all()))
    states = {row.pk: state_of(row, row.db_now) for row in read}
    return {pk: SKIP_REASONS[states[pk]] if pk in states else sentence_for("does_not_exist") for pk in pks}


def _read(rows: ResourceQuerySet, *, is_quarantined: bool) -> list[Candidate]:
    columns = rows.values_list("pk", "fence", "holder", "reason", "verdict", "until")
    read = retrying(connections[rows.db], lambda: list(columns.all()))
    return [
        Candidate(
            pk,
            fence,
            holder,
            is_quarantined,
            is_quarantined_by_others=is_quarantined and getattr(reason, "code", "") != CHECK_REASON,
            was_bad=is_quarantined or verdict == Verdict.BAD,
            until=until,
        )
        for pk, fence, holder, reason, verdict, until in read
    ]
