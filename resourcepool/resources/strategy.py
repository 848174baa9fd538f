"""Chooses the order in which free rows are tried.

If every process tried the longest idle row first, all but one would lose. So each process starts at random among the
first few free rows.
"""

import random
from collections import OrderedDict
from threading import get_ident
from typing import Any, Literal, get_args

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect.statement import Where
from resourcepool.leases.free_rows import candidates
from resourcepool.leases.models import Model
from resourcepool.leases.terms import Request

Strategy = Literal["spread", "sticky", "random"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

SPREAD_OVER = 64  # the longest idle rows that "spread" picks from; with fewer, more races are lost
MAX_WEIGHED = 1_000  # free rows considered in a choice by weight
MAX_HOLDERS = 10_000  # whose last resource "sticky" remembers
FRESH_SECONDS = 0.25  # how long rows read as free are tried without reading again


def choose(connection: BaseDatabaseWrapper, model: Model, where: Where, request: Request) -> list[Any]:
    """Return primary keys of free rows, in the order to try them."""
    if request.strategy == "random":
        return _by_weight(connection, model, where, request.count)
    rows = candidates(connection, model, where, max(SPREAD_OVER, request.count))
    first = random.randrange(len(rows)) if rows else 0  # noqa: S311 (not a secret)
    return rows[first:] + rows[:first]


def _by_weight(connection: BaseDatabaseWrapper, model: Model, where: Where, count: int) -> list[Any]:
    """Return primary keys of free rows in random order; weight 2 is twice as likely to be early as weight 1."""
    rows = candidates(connection, model, where, max(MAX_WEIGHED, count), "weight")
    # Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006): sort by u ** (1 / weight).
    shuffled = sorted(rows, key=lambda row: random.random() ** (1 / max(row[1], 1)), reverse=True)  # noqa: S311
    return [pk for pk, _ in shuffled]


class LastHeld:
    """The last row of each holder, for "sticky": of each name that callers gave, or else of each thread."""

    def __init__(self) -> None:
        self._last: OrderedDict[Any, Any] = OrderedDict()

    def note(self, request: Request, pk: Any) -> None:
        """Note that the holder of ``request`` released ``pk``."""
        terms = request.terms
        self._last[get_ident() if terms.holder_is_unique else terms.holder] = pk
        if len(self._last) > MAX_HOLDERS:
            self._last.popitem(last=False)

    def take(self, request: Request) -> Any:
        """Return and forget the last row of the holder of ``request``; None if unknown."""
        terms = request.terms
        return self._last.pop(get_ident() if terms.holder_is_unique else terms.holder, None)
