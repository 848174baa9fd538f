"""The permits of a read-write lock: one of them, or all."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.database.clock import monotonic
from resourcepool.locks.hold import Hold
from resourcepool.locks.models import AbstractPermit, RWLockPermit
from resourcepool.locks.owners import Key
from resourcepool.locks.permits import Permits, say_once
from resourcepool.locks.rows import TTL
from resourcepool.locks.rwlock.every import Every, Recounted
from resourcepool.locks.rwlock.hold import RWHold
from resourcepool.locks.ways import Way

READERS = 10
MOST_READERS = 100  # a writer takes, and renews, as many rows
PREFERRED, UPGRADING = -1, -2  # priorities: of writers, and of readers that wait to write
MOST_COUNTED = 10_000

_counted: dict[Key, int] = {}  # how many permits names had: only to ask for the right number at once


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
        ttl: object = TTL,
        timeout: object = None,
        on_lost: Callable[[Hold], object] | None = None,
    ) -> None:
        super().__init__(name, ttl=ttl, timeout=timeout, on_lost=on_lost)
        self.permits = options.whole("readers", readers, least=1, most=MOST_READERS)
        self.priority = 0 if options.flag("fair", fair) else PREFERRED

    async def take_every(self, way: Way, hold: RWHold, wait: float, priority: int) -> list[Any]:
        """Return the leases of all permits that ``hold`` has not. Raises AcquireTimeout."""
        until, count = monotonic() + wait, self._count(hold)
        while True:
            request = self._request(max(0.0, until - monotonic()), hold, count, priority)
            try:
                return await way.acquire(Every(self, hold.leases, self._note, wait), request)
            except Recounted as error:
                if not (count := error.there):
                    return []

    def _count(self, hold: RWHold) -> int:
        """Return how many permits to ask for; if that is wrong, it is said so (``Recounted``)."""
        return max(1, _counted.get(self.key, self.permits) - len(hold.leases))

    def _note(self, there: int) -> None:
        if not there:
            return
        if there != self.permits:
            say_once(f"{self!r} was made for {there} readers, so that holds; not {self.permits}, as here")
        if len(_counted) >= MOST_COUNTED:
            _counted.clear()
        _counted[self.key] = there

    def _insert(self, connection: BaseDatabaseWrapper) -> None:
        """Add the rows, if there are none at that moment: a writer may have counted others."""
        with transaction.atomic(using=connection.alias):
            super()._insert(connection)
            is_alone = self._rows(connection).count() == self.permits
            transaction.set_rollback(not is_alone, using=connection.alias)

    def _who_has_it(self) -> str:
        held = [one.holder for one in self.holders(limit=4)]
        return f": held by {', '.join(held[:3])}{' and others' * (len(held) > 3)}" if held else ""
