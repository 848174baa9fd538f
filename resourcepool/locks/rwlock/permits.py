"""The permits of a read-write lock: a reader acquires one, a writer all that it does not hold."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import MicrosUntil
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Grant, Request
from resourcepool.locks.base import TTL
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.models import AbstractPermit, RWLockPermit
from resourcepool.locks.permits import Permits, warn_once
from resourcepool.locks.registry import Key
from resourcepool.options import Seconds
from resourcepool.threads.sync_async import Mode, never
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.lease import release_grant

READERS = 10
MAX_READERS = 100  # a writer acquires and renews as many rows
WRITER_PRIORITY, UPGRADE_PRIORITY = -1, -2  # ticket priorities of writers and of upgrading readers
MAX_NAMES_COUNTED = 10_000

# The last known number of permits of a name, a guess for the first request.
_counted: dict[Key, int] = {}


class PermitsRecounted(BadOption):
    """The number of rows differs from the request: request ``count`` rows besides those the caller holds."""

    def __init__(self, requested: int, count: int) -> None:
        super().__init__("count", requested, f"{count}, the number of rows")
        self.count = count


class RWPermits(Permits):
    """The permits of one name; see ``RWLock`` for the options."""

    model: ClassVar[type[AbstractPermit]] = RWLockPermit
    kind = "read-write lock"

    def __init__(
        self,
        name: str,
        *,
        readers: int = READERS,
        fair: bool = False,
        ttl: Seconds = TTL,
        timeout: Seconds | None = None,
        on_lost: Callable[[Hold], object] | None = None,
    ) -> None:
        super().__init__(name, ttl=ttl, timeout=timeout, on_lost=on_lost)
        self.permits = options.whole("readers", readers, least=1, most=MAX_READERS)
        self.priority = 0 if options.flag("fair", fair) else WRITER_PRIORITY

    async def acquire_all(self, mode: Mode, hold: Hold, wait: float, priority: int) -> list[Any]:
        """Acquire all permits that ``hold`` does not have. Raises AcquireTimeout, also if ``hold`` is lost."""
        until = monotonic() + wait
        stop = partial(_is_lost, hold) if hold.leases else never
        count = max(
            1, _counted.get(self.key, self.permits) - len(hold.leases)
        )  # a guess: see ``PermitsRecounted``
        while True:
            request = self._request(max(0.0, until - monotonic()), hold, count, priority)
            try:
                return await acquire(
                    mode, AllPermits(self, hold.leases, self._note_count, wait), request, stop=stop
                )
            except PermitsRecounted as error:
                if hold.leases and not error.count:
                    return []
                count = max(1, error.count)

    def _note_count(self, count: int) -> None:
        if not count:
            return
        if count != self.permits:
            warn_once(f"{self!r} was created for {count} readers; readers={self.permits} is ignored")
        if len(_counted) >= MAX_NAMES_COUNTED:
            _counted.clear()
        _counted[self.key] = count

    def _insert(self, connection: BaseDatabaseWrapper) -> None:
        """Add the rows, but only if there are no others in the end: a writer may have counted those."""
        with transaction.atomic(using=connection.alias):
            super()._insert(connection)
            is_alone = self._rows(connection).count() == self.permits
            transaction.set_rollback(not is_alone, using=connection.alias)

    def _holders_text(self) -> str:
        holders = [request.holder for request in self.holders(limit=4)]
        return f": held by {', '.join(holders[:3])}{' and others' * (len(holders) > 3)}" if holders else ""


def _is_lost(hold: Hold) -> bool:
    """Whether ``hold`` is lost for good; ``is_held`` may become true again by a late renewal."""
    try:
        hold.ensure_held()
    except LeaseLost:
        return True
    return False


class Row(NamedTuple):
    """The state of a row: its fence, and whether it is free."""

    fence: int
    is_free: bool


class AllPermits:
    """The ``Source`` (``waiting.lease``) of all rows of a name; one object per request.

    Only the database knows the number of rows. Rows are added only while a name has none, so the number cannot change
    while one is held.

    Args:
        held: the caller's leases.
        on_count: called with the number of rows whenever they were counted.
        wait: total seconds that the caller waits.
    """

    def __init__(
        self, lock: Permits, held: Sequence[LockLease], on_count: Callable[[int], object], wait: float
    ) -> None:
        self.lock, self._held, self._on_count = lock, frozenset(lease.pk for lease in held), on_count
        self._wait = wait
        self._is_confirmed = False

    @property
    def model(self) -> Model:
        return self.lock.model

    @property
    def using(self) -> str:
        return self.lock.using

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        others = self._others(connection) or self._added(connection)
        if not all(row.is_free for row in others.values()):
            return None
        grants = verbs.claim_all(connection, self.model, list(others), request.terms) if others else []
        if grants is None:
            return None
        # A row whose fence did not move in between existed all the time, so no rows were added.
        if self._held or any(grant.fence == others[grant.pk].fence + 1 for grant in grants):
            self._is_confirmed = True
            return grants
        for grant in grants:
            release_grant(self, connection.alias, grant)
        return None

    def handle(self, using: str, grant: Grant, request: Request) -> LockLease:
        """Return the lease; raise PermitsRecounted unless all rows were granted."""
        if not self._is_confirmed:
            self._confirm(using, request)
        return self.lock.handle(using, grant, request)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        others = len(self._others(connection) or self._added(connection))
        if others != request.count:
            raise PermitsRecounted(request.count, others)

    def timed_out(self, request: Request, holder: str, error: Exception | None) -> AcquireTimeout:
        return self.lock.timed_out(dataclasses.replace(request, count=1, timeout=self._wait), holder, error)

    def _confirm(self, using: str, request: Request) -> None:
        try:
            others = len(self._others(connections[using]))
        except DatabaseUnavailable:
            raise PermitsRecounted(request.count, request.count) from None  # release all and retry
        if others != request.count:
            raise PermitsRecounted(request.count, others)
        self._is_confirmed = True

    def _others(self, connection: BaseDatabaseWrapper) -> dict[Any, Row]:
        rows = self.lock._rows(connection).values_list("pk", "fence", MicrosUntil("busy_before"))
        fetched = retrying(connection, lambda: list(rows.all()))
        self._on_count(len(fetched))
        return {pk: Row(fence, micros <= 0) for pk, fence, micros in fetched if pk not in self._held}

    def _added(self, connection: BaseDatabaseWrapper) -> dict[Any, Row]:
        if self._held:
            return {}
        self.lock._add_missing(connection)
        return self._others(connection)
