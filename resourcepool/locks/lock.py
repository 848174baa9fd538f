"""A lock for all processes on all hosts, with the methods of ``threading.RLock``; it is one leased row."""

import asyncio
import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.db.retry import retrying
from resourcepool.db.sync_async import Mode, for_asyncio
from resourcepool.exceptions import NotHeld
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.terms import Grant, Request
from resourcepool.locks.base import Named
from resourcepool.locks.lockable import H, Hold, Lockable, LockLease
from resourcepool.locks.models import AbstractNamed, Lock as LockRow
from resourcepool.locks.registry import current_owner, is_of_caller
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.models import Ticket
from resourcepool.waiting.source import delivered

MAX_CONTENDERS = 10_000


class Reentrant(Lockable[H]):
    """Held by one thread or asyncio task, which may acquire it again and must release it as often."""

    def owned(self) -> bool:
        """Whether this thread (or task) still holds it. No I/O."""
        hold = self._hold()
        return hold is not None and hold.is_held

    @property
    def _named(self) -> Named:
        raise NotImplementedError

    def _new_hold(self) -> H:
        raise NotImplementedError

    def _hold(self) -> H | None:
        """Return the caller's hold, also one that was lost."""
        hold: H | None = current_owner().holds.get(self._named.key)
        return hold

    def _require_hold(self, do: str) -> H:
        """Return the caller's hold, which it needs to ``do`` something; raises NotHeld, LeaseLost."""
        hold = self._hold()
        if hold is None:
            raise self._not_held(do)
        hold.ensure_held()
        return hold

    async def _obtain(self, mode: Mode, wait: float, n: int = 1) -> H:
        hold = self._hold()
        if hold is None:
            hold = self._new_hold()
            self._take(hold, await self._leases(mode, hold, wait))
        else:
            self._count_again(hold)
        return hold

    def _count_again(self, hold: H) -> None:
        hold.ensure_held()
        hold.count += 1

    async def _leases(self, mode: Mode, hold: H, wait: float) -> list[Any]:
        return await acquire(mode, self._named, self._named._request(wait, hold._when_lost))

    def _take(self, hold: H, leases: list[Any]) -> None:
        hold.leases = delivered(leases)
        current_owner().holds[self._named.key] = hold  # last: otherwise nothing refers to it, and it expires

    def _not_held(self, do: str) -> NotHeld:
        caller = "thread" if current_owner().task is None else "task"
        return NotHeld(f"{self!r} is not held by this {caller}, so it cannot {do}")


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
        return Hold(self, self.name, self._on_lost)

    async def _release(self, mode: Mode) -> None:
        hold = self._hold()
        if hold is None:
            raise self._not_held("release it")
        if hold.count > 1:
            hold.count -= 1
            return
        del current_owner().holds[self.key]  # atomic: after Ctrl-C before it, release() can be called again
        hold.count = 0
        await mode.call(hold.leases[0].release)

    # For conditions

    async def _acquire_again(self, mode: Mode, hold: Hold, given: Sequence[LockLease]) -> None:
        """Acquire it again for ``hold``, whose lease ``given`` was released; no timeout.

        A cancellation takes effect only once ``hold`` has new leases.
        """
        cancelled: asyncio.CancelledError | None = None
        while hold.leases is given:
            try:
                # The caller's database session was opened for the lock, so it ends with it.
                request = dataclasses.replace(self._request(math.inf, hold._when_lost), ends_session=True)
                self._take(hold, await acquire(mode, self, request))
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def _release_leftovers(self) -> None:
        """Release what Ctrl-C left of an earlier acquire or release of this thread: it would block the next one."""
        for kept in [kept for kept in keeper.unreleased() if isinstance(kept, LockLease)]:
            if (kept.model, kept.using, kept.pk) == self.key and is_of_caller(kept.holder):
                kept._release_quietly()

    # ``waiting.source.Source``

    def _claim(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        grant = verbs.claim(connection, self.model, self.name, request.terms)
        return None if grant is None else [grant]

    def _holders_text(self) -> str:
        holder = self.holder()
        return "" if holder is None else f": held by {holder.holder}"

    def _new_rows(self) -> Sequence[AbstractNamed]:
        return [self.model(pk=self.name)]
