"""Chooses which free rows to try, and in which order.

If every process tries the longest idle row first, all but one lose (seen in startree/thirdeye PR #1656). So each
process picks at random among the first few free rows.
"""

import random
import threading
from collections import OrderedDict
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.clock import monotonic
from resourcepool.database.where import Where
from resourcepool.leases.table import Model
from resourcepool.waiting.free_rows import candidates
from resourcepool.waiting.request import Request

STRATEGIES = ("spread", "sticky", "random")

AMONG = 64  # the longest idle rows that "spread" picks from; with fewer, more races are lost
WEIGHED = 1_000  # free rows that a choice by weight considers
REMEMBERED = 10_000  # holders whose last resource is known to "sticky"
FRESH_SECONDS = 0.25  # seconds for which rows read as free are tried without reading again: the claim decides
MOST_SELECTORS = 1_000  # for which free rows are remembered


def choose(connection: BaseDatabaseWrapper, model: Model, where: Where, request: Request) -> list[Any]:
    """Return primary keys of free rows in the order to try them."""
    if request.strategy == "random":
        return _by_weight(connection, model, where, request.count)
    rows = candidates(connection, model, where, max(AMONG, request.count))
    first = random.randrange(len(rows)) if rows else 0  # noqa: S311 (not a secret)
    return rows[first:] + rows[:first]


def _by_weight(connection: BaseDatabaseWrapper, model: Model, where: Where, count: int) -> list[Any]:
    """Return primary keys of free rows in random order; weight 2 is twice as likely to be early as weight 1."""
    rows = candidates(connection, model, where, max(WEIGHED, count), "weight")
    # Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006): sort by u ** (1 / weight).
    by_luck = sorted(rows, key=lambda row: random.random() ** (1 / max(row[1], 1)), reverse=True)  # noqa: S311
    return [pk for pk, _ in by_luck]


class LastHeld:
    """Remembers, for "sticky", the last row of each thread or holder."""

    def __init__(self) -> None:
        self._last: OrderedDict[Any, Any] = OrderedDict()

    def note(self, request: Request, pk: Any) -> None:
        """Note that ``pk`` was released by the maker of this request."""
        self._last[_rememberer(request)] = pk
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)

    def take(self, request: Request) -> Any:
        """Return the last row of the maker of this request, once; None if unknown."""
        return self._last.pop(_rememberer(request), None)


class LastSeen:
    """Remembers free rows for a moment: reading takes as long as a claim, and finds dozens of rows."""

    def __init__(self) -> None:
        self._free: dict[tuple[str, str], tuple[float, list[Any]]] = {}

    def note(self, using: str, selector: str, rows: list[Any]) -> None:
        """Note that these rows were free a moment ago; the last one is tried first."""
        if len(self._free) >= MOST_SELECTORS:
            self._free.clear()
        self._free[using, selector] = monotonic() + FRESH_SECONDS, rows

    def take(self, using: str, selector: str) -> Any:
        """Return a row that was free, each of them once; None if there is none, or it is too long ago."""
        until, rows = self._free.get((using, selector), (0.0, []))
        try:
            return rows.pop() if rows and monotonic() < until else None
        except IndexError:  # another thread took the last one
            return None


def _rememberer(request: Request) -> object:
    """Return the owner of "the one I had last": this thread, or the holder's name that the caller gave."""
    return threading.get_ident() if request.terms.holder_is_unique else request.terms.holder
