"""Which of the free rows to try, in which order.

Everybody trying the longest idle one first means that all but one lose (seen in startree/thirdeye PR #1656), so
each process picks at random among the first few, and among more of them the more often it loses.
"""

import random
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.leases import search
from resourcepool.leases.table import Model
from resourcepool.leases.where import Where

STRATEGIES = ("spread", "sticky", "random")

FEWEST, MOST = 4, 64
SHRINK = 0.97  # a lost race doubles their number, so that about one race in 25 is lost where many compete
WEIGHED = 1_000  # free rows that a choice by weight considers


class Spread:
    """Longest idle first, at random among the first few; how few is learned from races lost."""

    def __init__(self) -> None:
        self._few = float(FEWEST)

    def candidates(self, connection: BaseDatabaseWrapper, model: Model, where: Where, count: int) -> list[Any]:
        """Return primary keys of free rows in the order to try them."""
        rows = search.free_rows(connection, model, where, max(round(self._few), count))
        first = random.randrange(len(rows)) if rows else 0  # noqa: S311 (not a secret)
        return rows[first:] + rows[:first]

    def won(self) -> None:
        """A first choice was granted."""
        self._few = max(FEWEST, self._few * SHRINK)

    def lost_race(self) -> None:
        """Somebody else was faster."""
        self._few = min(MOST, self._few * 2)


def by_weight(connection: BaseDatabaseWrapper, model: Model, where: Where, count: int) -> list[Any]:
    """Return primary keys of free rows at random, a row of weight 2 twice as likely to be early as one of 1."""
    rows = search.free_rows(connection, model, where, max(WEIGHED, count), "weight")
    # Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006): sort by u ** (1 / weight).
    by_luck = sorted(rows, key=lambda row: random.random() ** (1 / max(row[1], 1)), reverse=True)  # noqa: S311
    return [pk for pk, _ in by_luck]
