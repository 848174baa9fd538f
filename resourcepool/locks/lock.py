"""A lock for all processes on all hosts, with the methods of ``threading.RLock``; it is one leased row."""

import asyncio
import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.terms import Grant, Request
from resourcepool.locks.base import Named
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.lockable import Reentrant
from resourcepool.locks.models import AbstractNamed
from resourcepool.locks.models import Lock as LockRow
from resourcepool.locks.registry import current_owner, holds_of, new_holder, parse_holder
from resourcepool.threads.async_threads import for_asyncio
from resourcepool.threads.sync_async import ASYNC, Mode, run_sync
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.models import Ticket

MAX_CONTENDERS = 10_000


class LockHolder(NamedTuple):
    """The holder of a lock and its fence."""

    holder: str
    fence: int


class Lock(Named, Reentrant[Hold]):
    """A lock known by its name; see ``Named`` for the options.

        with Lock("nightly-report", ttl=30, timeout=5) as held:
            with transaction.atomic(), held.guard():
                ...

    It belongs to a thread or an asyncio task, which may acquire it again through any ``Lock`` of this name and must
    release it as often; no other thread or task can release it. As a decorator, it is held while the function runs.
    See ``Hold`` for its limits.
    """

    model: ClassVar[type[LockRow]] = LockRow
    kind = "lock"

    def holder(self) -> LockHolder | None:
        """Return the current holder, by the database's clock; None: it is free. Raises DatabaseUnavailable."""
        connection = self._connection
        row = retrying(connection, self._rows(connection).held().values_list("holder", "fence").first)
        return None if row is None else LockHolder(*row)

    def locked(self) -> bool:
        """Whether it is held now. Raises DatabaseUnavailable."""
        return self.holder() is not None

    def contenders(self, limit: int = 100) -> list[str]:
        """Return the holder, then the waiters in order, at most ``limit``; like ``contenders`` of kazoo."""
        limit = options.whole("limit", limit, least=1, most=MAX_CONTENDERS)
        holder = self.holder()
        line = Ticket.objects.using(self.using).in_line_for(self.model, self.name).waiting()
        names = line.order_by("priority", "pk").values_list("holder", flat=True)[:limit]
        waiting = retrying(self._connection, lambda: list(names.all()))
        return [*([holder.holder] if holder else []), *waiting][:limit]

    aholder = for_asyncio(holder)
    alocked = for_asyncio(locked)
    acontenders = for_asyncio(contenders)

    @property
    def _named(self) -> Named:
        return self

    def _new_hold(self) -> Hold:
        return Hold(self.name, self._on_lost)

    async def _release(self, mode: Mode) -> None:
        mine, key = holds_of(current_owner()), self.key
        hold = mine.get(key)
        if hold is None:
            raise self._not_held("release it")
        if hold.count > 1:
            hold.count -= 1
            return
        del mine[key]  # atomic: after an interruption before it, release() can be called again
        hold.count = 0
        await mode.call(hold.leases[0].release)

    # For conditions

    def _acquire_again(self, hold: Hold) -> None:
        """Acquire it again for ``hold``, whose lease was released; no timeout."""
        # The caller's database session was opened for the lock, so it ends with it.
        request = dataclasses.replace(self._request(math.inf, hold), ends_session=True)
        self._take(holds_of(current_owner()), self.key, hold, run_sync(acquire, self, request))

    def _acquire_again_interrupted(self, hold: Hold) -> None:
        """``_acquire_again`` after an interruption during or after the release."""
        lease, mine = hold.leases[0], holds_of(current_owner())
        if mine.get(self.key) is hold and lease._is_delivered and keeper.is_renewing(lease):
            return
        me = parse_holder(new_holder(current_owner()))
        leases = (kept for kept in keeper.unreleased() if isinstance(kept, LockLease))
        for kept in leases:  # a lease of this caller would block the acquire
            if (kept.model, kept.using, kept.pk) == self.key and parse_holder(kept.holder) == me:
                kept._release_quietly()
        self._acquire_again(hold)

    async def _acquire_again_async(self, hold: Hold, given: Sequence[LockLease]) -> None:
        """``_acquire_again`` for asyncio; a cancellation takes effect only once ``hold`` has new leases."""
        cancelled: asyncio.CancelledError | None = None
        while hold.leases is given:
            try:
                self._take(holds_of(current_owner()), self.key, hold, await self._leases(ASYNC, hold, math.inf))
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    # ``waiting.lease.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        grant = verbs.claim(connection, self.model, self.name, request.terms)
        if grant is None and self._add_if_new(connection):
            grant = verbs.claim(connection, self.model, self.name, request.terms)
        return None if grant is None else [grant]

    def _holders_text(self) -> str:
        holder = self.holder()
        return "" if holder is None else f": held by {holder.holder}"

    def _new_rows(self) -> Sequence[AbstractNamed]:
        return [self.model(pk=self.name)]
