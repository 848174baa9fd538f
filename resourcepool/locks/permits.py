"""Permits: a request acquires one or more rows of a name, all or none. For semaphores and read-write locks."""

import logging
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Min

from resourcepool import options
from resourcepool.database.clock import monotonic
from resourcepool.database.open_transaction import set_idle_timeout
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.leases import verbs
from resourcepool.leases.free_rows import candidates
from resourcepool.leases.request import Request
from resourcepool.leases.terms import Grant
from resourcepool.locks.base import Named
from resourcepool.locks.hold import LockLease
from resourcepool.locks.models import AbstractPermit
from resourcepool.locks.registry import Key
from resourcepool.threads.async_threads import for_asyncio
from resourcepool.waiting.models import line_name
from resourcepool.waiting.pacing import pacing_of
from resourcepool.waiting.release import release_many

CLAIM_ROUNDS = 5  # attempts to read free permits and claim them before others do
TRIES_PER_ROUND = 3
MAX_CANDIDATES = 64  # free permits to choose from at random, so that processes try different ones
RECENT_SECONDS = 1.0  # a permit released here within this time is claimed without reading
MAX_NAMES = 1_000  # whose permits are remembered
MAX_HOLDERS = 10_000

logger = logging.getLogger(__name__)


class _RecentlyReleased:
    """Permits that this process released recently while nothing waited: probably free."""

    def __init__(self) -> None:
        self._free: dict[Key, list[tuple[float, Any]]] = {}

    def note(self, key: Key, pk: Any) -> None:
        if key not in self._free and len(self._free) >= MAX_NAMES:
            self._free.clear()
        keys = self._free.setdefault(key, [])
        if len(keys) < MAX_CANDIDATES:
            keys.append((monotonic() + RECENT_SECONDS, pk))

    def take(self, key: Key) -> Any:
        keys = self._free.get(key, [])
        try:
            until, pk = keys.pop()
        except IndexError:  # possibly another thread took the last one
            return None
        if until > monotonic():
            return pk
        keys.clear()  # the rest are older
        return None


recently_released = _RecentlyReleased()


@lru_cache(MAX_NAMES)
def warn_once(text: str) -> None:
    """Log a difference between the code and the database once per process."""
    logger.warning("%s", text)


class PermitLease(LockLease):
    """The lease of one permit."""

    def release_or_expire(self) -> None:
        super().release_or_expire()
        name = self.model.name_of(self.pk)
        if pacing_of(line_name(self.model, name), self.using).awaited_until <= monotonic():
            recently_released.note((self.model, self.using, name), self.pk)

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
            remaining[0].release_or_expire()
        elif remaining:
            PermitLease._release_several(remaining)
        for lease in released:
            lease._state.raise_if_ended(lease)

    @staticmethod
    def _release_several(leases: "Sequence[PermitLease]") -> None:
        for lease in leases:
            lease._check_process()
        for lease in leases:
            lease.stop_renewing()  # before the statement: after an interruption nothing would release it
            lease._state.is_in_doubt = True
        latest = {lease.pk: lease for lease in sorted(leases, key=lambda lease: lease.fence)}
        first, until = leases[0], min(lease.trust.until for lease in leases)
        connection = connections[first.using]
        with statement_timeout():
            if connection.atomic_blocks:
                set_idle_timeout(connection, first.terms.ttl)
            rows = [(pk, lease.fence) for pk, lease in latest.items()]
            lost = release_many(connection, first.model, rows, trusted_until=until)
        for lease in leases:  # an older grant of a row that was granted to this process again was lost
            if lease.pk in lost or lease is not latest[lease.pk]:
                lease.lose(verbs.TAKEN)
            else:
                lease.mark_released()
        for lease in leases:
            if lease._state.lost is not None:
                raise lease._state.lost.again()


class PermitHolder(NamedTuple):
    """The permits of one request, with the lowest of their fences. A waiting writer holds the permits it got so far."""

    holder: str
    permits: int
    fence: int


class Permits(Named):
    """A lock with several permits; ``permits``: how many rows are created if there are none."""

    model: ClassVar[type[AbstractPermit]]
    lease = PermitLease
    permits = 1

    def holders(self, limit: int = 100) -> list[PermitHolder]:
        """Return the current holders of permits, one entry per request. Raises DatabaseUnavailable."""
        limit = options.whole("limit", limit, least=1, most=MAX_HOLDERS)
        connection = self._connection
        rows = self._rows(connection).held().values_list("holder").order_by("holder")
        counted = rows.annotate(Count("pk"), Min("fence"))[:limit]
        return [PermitHolder(*row) for row in retrying(connection, lambda: list(counted))]

    aholders = for_asyncio(holders)

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        self._add_if_new(connection)
        key = self.model, connection.alias, self.name
        last = recently_released.take(key) if request.count == 1 else None
        if last is not None and (grants := self._claim(connection, [last], request)) is not None:
            return grants
        where, tried = self.model.where(self.name, connection), set[Any]()
        for _ in range(CLAIM_ROUNDS):
            rows = candidates(connection, self.model, where, max(MAX_CANDIDATES, request.count))
            free = [pk for pk in rows if pk not in tried]  # a locked row looks free every time
            if len(free) < request.count:
                return None
            first = random.randrange(len(free))  # noqa: S311 (not a secret)
            free = free[first:] + free[:first]
            for start in range(0, len(free) - request.count + 1, request.count)[:TRIES_PER_ROUND]:
                chosen = free[start : start + request.count]
                if (grants := self._claim(connection, chosen, request)) is not None:
                    return grants
                tried.update(chosen if request.count == 1 else ())
        return None

    def _claim(
        self, connection: BaseDatabaseWrapper, pks: Sequence[Any], request: Request
    ) -> list[Grant] | None:
        if len(pks) > 1:
            return verbs.claim_all(connection, self.model, pks, request.terms)
        grant = verbs.claim(connection, self.model, pks[0], request.terms)
        return None if grant is None else [grant]

    def _new_rows(self) -> Sequence[AbstractPermit]:
        return [self._new_row(number) for number in range(self.permits)]

    def _new_row(self, number: int, *, in_service: bool = True) -> AbstractPermit:
        key = self.model.key_of(self.name, number)
        return self.model(key=key, name=self.name, in_service=in_service)
