"""The source of a pool's rows: how free ones are chosen and claimed, and why there are none.

If every process tried the longest idle row first, all but one would lose. So each process starts at random among the
first few free rows.
"""

import random
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from threading import get_ident
from typing import Any, Generic, Literal, cast, get_args

from django.db import DatabaseError, InterfaceError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Q

from resourcepool.clock import monotonic
from resourcepool.db.dialect import DbNow
from resourcepool.db.dialect.statement import Where
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import TIMEOUT_GRACE, statement_timeout
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, ResourcePoolError
from resourcepool.leases import verbs
from resourcepool.leases.free_rows import FreeRowCache, candidates, claim_first
from resourcepool.leases.models import AbstractLease, Model
from resourcepool.leases.terms import Grant, Request
from resourcepool.resources import selectors
from resourcepool.resources.lease import M, ResourceLease
from resourcepool.resources.state import Status
from resourcepool.waiting.models import Ticket

Strategy = Literal["spread", "sticky", "random"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

SPREAD_OVER = 64  # the longest idle rows that "spread" picks from; with fewer, more races are lost
MAX_WEIGHED = 1_000  # free rows considered in a choice by weight
MAX_HOLDERS = 10_000  # whose last resource "sticky" remembers
FRESH_SECONDS = 0.25  # how long rows read as free are tried without reading again
MAX_READS = 10  # of free rows, while all races for them are lost
MAX_GUESSES = 2  # claims of recently free rows before free rows are read again
FEW_FREE = 4  # so few free rows are not remembered: others claim them at once
MAX_CLAIM_SECONDS = 0.5  # then the caller waits in line: rows that look free may be locked
ROW_COUNTS = (
    ": {match} match, {leased} leased, {resting} cooling down or quarantined, {out} out of service"
    "; {others} others waiting for this pool"
)


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


class PoolSource(Generic[M]):
    """The ``Source`` (``waiting.source``) of the rows of one model."""

    _model: type[AbstractLease] | None = None

    @cached_property
    def model(self) -> type[M]:
        """The model whose rows this pool leases."""
        model: Any = self._model
        if not isinstance(model, type) or not issubclass(model, AbstractLease) or model._meta.abstract:
            raise BadOption("model", model, "a concrete Django model derived from AbstractResource")
        return cast(type[M], model)

    @property
    def using(self) -> str:
        """The database that decides leases: the one to which the project's routers write this model."""
        return router.db_for_write(self.model)

    @cached_property
    def last_held(self) -> LastHeld:
        """The last row of each holder, for the strategy "sticky"."""
        return LastHeld()

    @cached_property
    def _last_seen(self) -> FreeRowCache:
        return FreeRowCache(FRESH_SECONDS)

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim free rows; None if too few are free."""
        where, tried = selectors.where(self.model, request.selector, connection.alias), set[Any]()
        for pk in self._guesses(connection, request) if request.count == 1 else ():
            if (grant := verbs.claim(connection, self.model, pk, request.terms, where)) is not None:
                return [grant]
        gives_up_at = monotonic() + MAX_CLAIM_SECONDS
        for _ in range(MAX_READS):
            # Rows that a long transaction has locked look free again and again.
            rows = [pk for pk in choose(connection, self.model, where, request) if pk not in tried]
            grants, left = claim_first(connection, self.model, rows, request, tried, where)
            if grants is not None:
                if request.count == 1 and len(rows) > FEW_FREE:
                    self._last_seen.put((connection.alias, request.selector), left[::-1])
                return grants
            if len(rows) < request.count or monotonic() > gives_up_at:
                return None
        return None

    def _guesses(self, connection: BaseDatabaseWrapper, request: Request) -> Iterator[Any]:
        """Yield rows to claim without reading: the last one of the holder, then recently free ones."""
        if request.strategy == "sticky" and (last := self.last_held.take(request)) is not None:
            yield last
        if request.strategy != "random":  # "random" chooses by weight among all free rows
            for _ in range(MAX_GUESSES):
                if (seen := self._last_seen.take((connection.alias, request.selector))) is None:
                    return
                yield seen

    def handle(self, using: str, grant: Grant, request: Request) -> ResourceLease[M]:
        """Return the handle of a grant."""
        return ResourceLease(self, using, grant, request)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Raise BadOption for more rows than exist: such a request would collect all rows and starve others."""
        if request.count > 1:
            wanted = selectors.selector_filter(self.model, request.selector)
            rows = verbs.rows_of(connection, self.model).filter(wanted).exclude(status=Status.RETIRED)
            total = retrying(connection, rows.count)
            if total < request.count:
                why = f"at most {total}, the number of matching resources that are not retired"
                raise BadOption("count", request.count, why)

    def timed_out(self, request: Request, holder: str, error: Exception | None) -> AcquireTimeout:
        """Return the timeout error, with row counts by state if the database answers."""
        number = "" if request.count == 1 else f"{request.count} of "
        matching = "" if request.selector == "{}" else f" matching {request.selector}"
        what = f"{number}{self.model._meta.label}{matching}"
        why = f": {error}" if error else self._row_counts(request, holder)
        return AcquireTimeout(f"no {what} came free{request.within}{why}")

    def _row_counts(self, request: Request, holder: str) -> str:
        connection, busy = connections[self.using], Q(busy_before__gt=DbNow())
        wanted = selectors.selector_filter(self.model, request.selector)
        rows = verbs.rows_of(connection, self.model).filter(wanted)
        tickets = Ticket.objects.using(connection.alias).waiting().for_rows_of(self.model)
        counts = {
            "match": Count("pk"),
            "leased": Count("pk", filter=busy & ~Q(holder="")),
            "resting": Count("pk", filter=busy & Q(holder="", in_service=True)),
            "out": Count("pk", filter=Q(in_service=False)),
        }
        try:
            with statement_timeout(TIMEOUT_GRACE):
                numbers = retrying(connection, lambda: rows.aggregate(**counts))
                others = retrying(connection, tickets.exclude(holder=holder).count)
            return ROW_COUNTS.format(**numbers, others=others)
        except DatabaseUnavailable as error:
            return f": {error}"
        except (DatabaseError, InterfaceError, ResourcePoolError):
            return ""
