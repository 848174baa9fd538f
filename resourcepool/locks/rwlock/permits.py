"""The permits of a read-write lock: a reader takes one, a writer all that it does not have."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Unpack

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import MicrosUntil
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Grant
from resourcepool.locks.base import LockOptions
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.models import AbstractPermit, RWLockPermit
from resourcepool.locks.permits import Permits, warn_once
from resourcepool.locks.registry import Key
from resourcepool.waiting.lease import give_back
from resourcepool.waiting.request import Request
from resourcepool.waiting.sync_async import Mode, never

READERS = 10
MAX_READERS = 100  # a writer takes, and renews, as many rows
WRITER_PRIORITY, UPGRADE_PRIORITY = -1, -2  # priorities: of writers, and of readers that wait to write
MAX_NAMES_COUNTED = 10_000

_counted: dict[
    Key, int
] = {}  # how many permits names had: only so that the first request is for the right number


class PermitsRecounted(BadOption):
    """Not as many rows as were asked for: ask for ``there``, besides those that the caller has."""

    def __init__(self, asked: int, there: int) -> None:
        super().__init__("count", asked, f"{there}, for so many rows there are")
        self.there = there


class RWPermits(Permits):
    """The permits of one name; see ``RWLock`` for the options."""

    model: ClassVar[type[AbstractPermit]] = RWLockPermit
    kind = "read-write lock"

    def __init__(
        self, name: str, *, readers: int = READERS, fair: bool = False, **chosen: Unpack[LockOptions]
    ) -> None:
        super().__init__(name, **chosen)
        self.permits = options.whole("readers", readers, least=1, most=MAX_READERS)
        self.priority = 0 if options.flag("fair", fair) else WRITER_PRIORITY

    async def acquire_all(self, mode: Mode, hold: Hold, wait: float, priority: int) -> list[Any]:
        """Return the leases of all permits that ``hold`` has not. Raises AcquireTimeout, also when ``hold`` is lost."""
        until = monotonic() + wait
        stop = partial(_is_lost, hold) if hold.leases else never
        count = max(1, _counted.get(self.key, self.permits) - len(hold.leases))  # perhaps wrong: see Recounted
        while True:
            request = self._request(max(0.0, until - monotonic()), hold, count, priority)
            try:
                return await mode.acquire(AllPermits(self, hold.leases, self._note, wait), request, stop=stop)
            except PermitsRecounted as error:
                if hold.leases and not error.there:
                    return []
                count = max(1, error.there)

    def _note(self, there: int) -> None:
        if not there:
            return
        if there != self.permits:
            warn_once(f"{self!r} was made for {there} readers, so that holds; not {self.permits}, as here")
        if len(_counted) >= MAX_NAMES_COUNTED:
            _counted.clear()
        _counted[self.key] = there

    def _insert(self, connection: BaseDatabaseWrapper) -> None:
        """Add the rows only if there are no others by then, which a writer may have counted."""
        with transaction.atomic(using=connection.alias):
            super()._insert(connection)
            is_alone = self._rows(connection).count() == self.permits
            transaction.set_rollback(not is_alone, using=connection.alias)

    def _holders_text(self) -> str:
        held = [one.holder for one in self.holders(limit=4)]
        return f": held by {', '.join(held[:3])}{' and others' * (len(held) > 3)}" if held else ""


def _is_lost(hold: Hold) -> bool:
    """Tell whether ``hold`` is lost, for good: a renewal that comes late would otherwise undo what ended a wait."""
    try:
        hold.ensure_held()
    except LeaseLost:
        return True
    return False


class Row(NamedTuple):
    """A row as it was read: its fence, and whether it is free."""

    fence: int
    is_free: bool


class AllPermits:
    """The ``Source`` (``waiting.request``) of all rows of a name; one for each request.

    The database says how many there are, never the code. Rows are added only while a name has none, so the number
    cannot change while one is held.

    Args:
        mine: leases that the caller has.
        note: called with the number of all rows whenever they were counted.
        wait: how many seconds the caller waits, however often it asks.
    """

    def __init__(
        self, lock: Permits, mine: Sequence[LockLease], note: Callable[[int], object], wait: float
    ) -> None:
        self.lock, self._mine, self._note = lock, frozenset(lease.pk for lease in mine), note
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
        # A row that was not granted in between was there all the time, so no rows can have been added.
        if self._mine or any(grant.fence == others[grant.pk].fence + 1 for grant in grants):
            self._is_confirmed = True
            return grants
        for grant in grants:
            give_back(self, connection.alias, grant)
        return None

    def handle(self, using: str, grant: Grant, request: Request) -> LockLease:
        """Raise Recounted if the granted rows are not all."""
        if not self._is_confirmed:
            self._confirm(using, request)
        return self.lock.handle(using, grant, request)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        others = len(self._others(connection) or self._added(connection))
        if others != request.count:
            raise PermitsRecounted(request.count, others)

    def timed_out(self, request: Request, holder: str, trouble: Exception | None) -> AcquireTimeout:
        return self.lock.timed_out(dataclasses.replace(request, count=1, timeout=self._wait), holder, trouble)

    def _confirm(self, using: str, request: Request) -> None:
        try:
            others = len(self._others(connections[using]))
        except DatabaseUnavailable:
            raise PermitsRecounted(request.count, request.count) from None  # all go back, and it is tried again
        if others != request.count:
            raise PermitsRecounted(request.count, others)
        self._is_confirmed = True

    def _others(self, connection: BaseDatabaseWrapper) -> dict[Any, Row]:
        rows = self.lock._rows(connection).values_list("pk", "fence", MicrosUntil("busy_before"))
        found = retrying(connection, lambda: list(rows.all()))
        self._note(len(found))
        return {pk: Row(fence, micros <= 0) for pk, fence, micros in found if pk not in self._mine}

    def _added(self, connection: BaseDatabaseWrapper) -> dict[Any, Row]:
        if self._mine:
            return {}
        self.lock._add_missing(connection)
        return self._others(connection)
