"""Which of the free rows to try, in which order.

Everybody trying the longest idle one first means that all but one lose (seen in startree/thirdeye PR #1656), so
each process picks at random among the first few that are free.
"""

import random
import threading
from collections import OrderedDict
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.leases.table import Model
from resourcepool.leases.where import Where
from resourcepool.waiting.free_rows import candidates
from resourcepool.waiting.request import Request

STRATEGIES = ("spread", "sticky", "random")

AMONG = 64  # the longest idle rows that "spread" picks from; with fewer, more races are lost
WEIGHED = 1_000  # free rows that a choice by weight considers
REMEMBERED = 10_000  # holders whose last resource is known to "sticky"


def choose(connection: BaseDatabaseWrapper, model: Model, where: Where, request: Request) -> list[Any]:
    """Return primary keys of free rows in the order to try them."""
    if request.strategy == "random":
        return _by_weight(connection, model, where, request.count)
    rows = candidates(connection, model, where, max(AMONG, request.count))
    first = random.randrange(len(rows)) if rows else 0  # noqa: S311 (not a secret)
    return rows[first:] + rows[:first]


def _by_weight(connection: BaseDatabaseWrapper, model: Model, where: Where, count: int) -> list[Any]:
    """Return primary keys of free rows at random, a row of weight 2 twice as likely to be early as one of 1."""
    rows = candidates(connection, model, where, max(WEIGHED, count), "weight")
    # Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006): sort by u ** (1 / weight).
    by_luck = sorted(rows, key=lambda row: random.random() ** (1 / max(row[1], 1)), reverse=True)  # noqa: S311
    return [pk for pk, _ in by_luck]


class LastHeld:
    """Remembers for "sticky" what everybody here had last."""

    def __init__(self) -> None:
        self._last: OrderedDict[Any, Any] = OrderedDict()

    def note(self, request: Request, pk: Any) -> None:
        """Note that ``pk`` was released by somebody who had asked for it like this."""
        self._last[_rememberer(request)] = pk
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)

    def take(self, request: Request) -> Any:
        """Return what whoever asks had last, once; None if that is not known."""
        return self._last.pop(_rememberer(request), None)


def _rememberer(request: Request) -> object:
    """Who "the one I had last" is about: this thread, or whoever goes by the name the caller gave."""
    return threading.get_ident() if request.terms.holder_is_unique else request.terms.holder
