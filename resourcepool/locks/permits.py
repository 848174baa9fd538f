"""Permits: a request acquires one or more rows of a name, all or none; and how their number changes."""

import contextlib
import logging
import random
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Min

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.db.sync_async import for_asyncio
from resourcepool.db.timeouts import statement_timeout
from resourcepool.db.transactions import run_short_transaction
from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs
from resourcepool.leases.free_rows import FreeRowCache, candidates, claim, claim_first
from resourcepool.leases.models import table_of
from resourcepool.leases.terms import Grant, Request
from resourcepool.locks.base import Named
from resourcepool.locks.lockable import LockLease
from resourcepool.locks.models import NUMBER_MARK, AbstractPermit
from resourcepool.locks.registry import Key
from resourcepool.waiting.assignment import assign_quietly
from resourcepool.waiting.models import line_name
from resourcepool.waiting.pacing import pacing_of
from resourcepool.waiting.release import release_many

CLAIM_ROUNDS = 5  # attempts to read free permits and claim them before others do
MAX_CANDIDATES = 64  # free permits to choose from at random, so that processes try different ones
RECENT_SECONDS = 1.0  # a permit released here within this time is claimed without reading
MAX_NAMES = 10_000  # in ``counted``
MAX_HOLDERS = 10_000
MAX_PERMITS = 10_000
RESIZE_TRIES = 3

logger = logging.getLogger(__name__)

recently_released = FreeRowCache(RECENT_SECONDS)  # permits that this process released while nothing waited
counted: dict[Key, int] = {}  # the last known number of permits by name


@lru_cache(1_000)
def warn_once(text: str) -> None:
    """Log a difference between the code and the database once per process."""
    logger.warning("%s", text)


class PermitLease(LockLease):
    """The lease of one permit."""

    def release(self) -> None:
        super().release()
        name = self.model.name_of(self.pk)
        if pacing_of(line_name(self.model, name), self.using).awaited_until <= monotonic():
            recently_released.add((self.model, self.using, name), self.pk)

    @staticmethod
    def release_together(leases: "Sequence[PermitLease]") -> None:
        """Release these leases of one name, in one statement if it has no waiters.

        Raises:
            LeaseLost: some were lost before (LeaseReleased: released); the others are released.
            DatabaseUnavailable: leases that were not released will expire.
        """
        released = [lease for lease in leases if lease.is_released]
        remaining = [lease for lease in leases if lease not in released]
        if len(remaining) == 1:
            remaining[0].release()
        elif remaining:
            PermitLease._release_several(remaining)
        for lease in released:
            lease._state.raise_if_ended(lease)

    @staticmethod
    def _release_several(leases: "Sequence[PermitLease]") -> None:
        for lease in leases:
            lease._check_process()
        for lease in leases:
            lease._stop_renewing()  # before the statement: after an interruption nothing would release it
            lease._state.is_in_doubt = True
        latest = {lease.pk: lease for lease in sorted(leases, key=lambda lease: lease.fence)}
        first, until = leases[0], min(lease._trust.until for lease in leases)
        connection = connections[first.using]
        with statement_timeout():
            rows = [(pk, lease.fence) for pk, lease in latest.items()]
            lost = release_many(connection, first.model, rows, trusted_until=until)
        for lease in leases:  # an older grant of a row that was granted to this process again was lost
            if lease.pk in lost or lease is not latest[lease.pk]:
                lease._lose(verbs.TAKEN)
            else:
                lease._mark_released()
        for lease in leases:
            if lease._state.lost is not None:
                raise lease._state.lost.again()


class PermitHolder(NamedTuple):
    """The permits of one request, with the lowest of their fences. A waiting writer holds the permits it got so far."""

    holder: str
    permits: int
    fence: int


class TooManyPermits(BadOption):
    """More permits are requested than exist."""


class Permits(Named):
    """A lock with several permits; ``permits``: how many rows are created if there are none."""

    model: ClassVar[type[AbstractPermit]]
    lease = PermitLease
    option: ClassVar[str]  # that sets ``permits`` of a new name
    hint: ClassVar[str] = ""  # how to change it later
    permits = 1

    def holders(self, limit: int = 100) -> list[PermitHolder]:
        """Return the current holders of permits, one entry per request. Raises DatabaseUnavailable."""
        limit = options.whole("limit", limit, least=1, most=MAX_HOLDERS)
        connection = self._connection
        rows = self._rows(connection).held().values_list("holder").order_by("holder")
        counted = rows.annotate(Count("pk"), Min("fence"))[:limit]
        return [PermitHolder(*row) for row in retrying(connection, lambda: list(counted))]

    aholders = for_asyncio(holders)

    # ``waiting.source.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        if self.key not in counted:
            self._count_rows(connection)
        grants = super().claim_free(connection, request)
        if grants is None and not request.timeout:
            self._refuse_too_many(connection, request)
        return grants

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Raise TooManyPermits for more than exist: the request would wait forever and block all others."""
        super().refuse_impossible(connection, request)
        self._refuse_too_many(connection, request)

    def _refuse_too_many(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        if request.count == 1:  # waits even for a semaphore of 0 permits, which may be resized
            return
        count = self._count_rows(connection)
        if count < request.count:
            raise TooManyPermits("n", request.count, f"at most {count}, the permits of {self!r}")

    def _claim(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        key = self.model, connection.alias, self.name
        last = recently_released.take(key) if request.count == 1 else None
        if last is not None and (grants := claim(connection, self.model, [last], request.terms)) is not None:
            return grants
        where, tried = self.model.where(self.name, connection), set[Any]()
        for _ in range(CLAIM_ROUNDS):
            rows = candidates(connection, self.model, where, max(MAX_CANDIDATES, request.count))
            free = [pk for pk in rows if pk not in tried]  # a locked row looks free every time
            if len(free) < request.count:
                return None
            first = random.randrange(len(free))  # noqa: S311 (not a secret)
            free = free[first:] + free[:first]
            grants, _ = claim_first(connection, self.model, free, request, tried)
            if grants is not None:
                return grants
        return None

    def _count_rows(self, connection: BaseDatabaseWrapper) -> int:
        """Return the number of permits in service; log once if it is not the number in the code."""
        count: int = retrying(connection, self._rows(connection).filter(in_service=True).count)
        if count:
            if len(counted) >= MAX_NAMES:
                counted.clear()
            counted[self.key] = count
            if count != self.permits:
                warn_once(
                    f"{self!r} has {count} permits in the database; {self.option}={self.permits} is ignored{self.hint}"
                )
        return count

    def _new_rows(self) -> Sequence[AbstractPermit]:
        return [self._new_row(number) for number in range(self.permits)]

    def _new_row(self, number: int, *, in_service: bool = True) -> AbstractPermit:
        key = self.model.key_of(self.name, number)
        return self.model(key=key, name=self.name, in_service=in_service)


class _Row(NamedTuple):
    pk: Any
    in_service: bool
    is_held: bool

    @property
    def number(self) -> int:
        return int(self.pk.rpartition(NUMBER_MARK)[2])


def resize(permits: Permits, value: int) -> int:
    """Change the number of permits; see ``Semaphore.resize``.

    At least one row is kept out of service, so that the sweep keeps the name, and with it the operator's number.
    """
    using = permits.using

    def change() -> int:
        beyond = _resize(permits, using, value)
        # Inside the transaction: with autocommit off, on_commit needs one.
        transaction.on_commit(partial(assign_quietly, using, permits.model, [permits.name]), using=using)
        return beyond

    for _ in range(RESIZE_TRIES):
        with contextlib.suppress(IntegrityError):  # rows added concurrently
            return run_short_transaction(using, change)
    return run_short_transaction(using, change)


def _locked_rows(permits: Permits, connection: BaseDatabaseWrapper) -> list[_Row]:
    """Lock all rows of the name, so that no other resize or sweep sees this one half done."""
    db_dialect, table = dialect.of(connection), table_of(connection, permits.model)
    # Without this hint MariaDB 11 uses the index of the ORDER BY and locks every row it reads there.
    index = db_dialect.by_index.format(index=f"rp_{permits.model._meta.model_name}_free")
    lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
    name = connection.ops.quote_name("name")
    is_held = f"CASE WHEN {table.busy_before} > {db_dialect.now} THEN 1 ELSE 0 END"
    query = f"SELECT {table.pk}, in_service, {is_held} FROM {table.name}{index} WHERE {name} = %s"  # noqa: S608
    rows = dialect.run(connection, f"{query} ORDER BY {table.pk}{lock}", (permits.name,), dialect.all_rows)
    return [_Row(pk, bool(in_service), bool(held)) for pk, in_service, held in rows]


def _resize(permits: Permits, using: str, value: int) -> int:
    rows = verbs.rows_of(connections[using], permits.model).filter(name=permits.name)
    existing = _locked_rows(permits, connections[using])
    # Held rows stay in service before free ones, to hold as few as possible beyond the new value.
    existing.sort(key=lambda row: (not row.is_held, not row.in_service, row.number))
    stay, go = existing[:value], existing[value:]
    rows.filter(pk__in=[row.pk for row in stay if not row.in_service]).update(in_service=True)
    rows.filter(pk__in=[row.pk for row in go if row.in_service]).update(in_service=False)
    missing, taken = value - len(stay), {row.number for row in existing}
    numbers = (number for number in range(MAX_PERMITS + 1) if number not in taken)
    new = [permits._new_row(next(numbers)) for _ in range(missing)]
    if not go:
        new.append(permits._new_row(next(numbers), in_service=False))
    for row in new:
        row.busy_before = DbNow()
    rows.bulk_create(new)
    return sum(row.is_held for row in go)
