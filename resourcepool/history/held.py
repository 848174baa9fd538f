"""For how long a lease was held that an operator took away: who takes it does not know, the history does."""

from collections.abc import Sequence
from typing import Any

from resourcepool.dialect import MicrosUntil
from resourcepool.history.models import MAX_ROW, Event, storable
from resourcepool.signals import Fact, What

Grant = tuple[str, str, int]  # pool, row, fence


def grant(fact: Fact) -> Grant:
    """Return which grant ``fact`` is about, as events name it."""
    return fact.model._meta.label_lower, storable(fact.pk, MAX_ROW), fact.fence


def held(facts: Sequence[Fact], now: float, using: str) -> dict[Grant, float]:
    """Return {grant: for how many seconds it lasted} of those that were revoked, as far as the history knows.

    Args:
        now: this moment by the process's own clock, as in ``Fact.at``.
    """
    revoked = {grant(fact): fact.at for fact in facts if fact.what is What.REVOKED}
    if not revoked:
        return {}
    ages = {
        **_ages(list(revoked), using),
        **{grant(one): now - one.at for one in facts if one.what is What.ACQUIRED},
    }
    return {one: max(0.0, ages[one] - (now - at)) for one, at in revoked.items() if one in ages}


def _ages(grants: Sequence[Grant], using: str) -> dict[Grant, float]:
    """Return {grant: how many seconds ago it began} of those whose beginning is written down, in one query."""
    pools, rows, fences = (set(column) for column in zip(*grants, strict=True))
    begun: Any = Event.objects.using(using).filter(
        pool__in=pools, row__in=rows, fence__in=fences, what=What.ACQUIRED
    )
    found = begun.values_list("pool", "row", "fence", MicrosUntil("at"))
    return {(pool, row, fence): -micros / 1_000_000 for pool, row, fence, micros in found}
