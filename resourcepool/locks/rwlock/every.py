"""Takes every row of one name, or all but those that the caller has: for one who excludes all others."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.retry import retrying
from resourcepool.dialect import MicrosUntil
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Grant
from resourcepool.locks.hold import LockLease
from resourcepool.locks.permits import Permits
from resourcepool.waiting.lease import give_back
from resourcepool.waiting.request import Request


class Recounted(BadOption):
    """There are more rows than were asked for, or fewer: ask for ``there``, beside those that the caller has."""

    def __init__(self, asked: int, there: int) -> None:
        super().__init__("count", asked, f"{there}, for so many rows there are")
        self.there = there


class Row(NamedTuple):
    """A row as it was read: its fence, and whether it is free."""

    fence: int
    is_free: bool


class Every:
    """The ``Source`` (``waiting.request``) of all rows of a name; one for each request.

    How many there are is asked of the database, never of the code. Rows are added only while a name has none
    (``RWLock``), so nobody adds any once one is held: a number that is read while one is held stays right.

    Args:
        mine: rows that the caller has.
        note: called with the number of all rows whenever they have been counted.
        wait: for how many seconds the caller waits, however often it asks.
    """

    def __init__(
        self, lock: Permits, mine: Sequence[LockLease], note: Callable[[int], object], wait: float
    ) -> None:
        self.lock, self._mine, self._note = lock, frozenset(lease.pk for lease in mine), note
        self._wait = wait
        self._is_confirmed = False

    @property
    def model(self) -> Model:
        """The model of the rows."""
        return self.lock.model

    @property
    def using(self) -> str:
        """The database that decides about them."""
        return self.lock.using

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim all of them if all are free."""
        others = self._others(connection) or self._added(connection)
        if not all(row.is_free for row in others.values()):
            return None
        grants = verbs.claim_all(connection, self.model, list(others), request.terms) if others else []
        if grants is None:
            return None
        # A row that nobody had meanwhile was there all the time: then none can have been added.
        if self._mine or any(grant.fence == others[grant.pk].fence + 1 for grant in grants):
            self._is_confirmed = True
            return grants
        for grant in grants:
            give_back(self, connection.alias, grant)
        return None

    def handle(self, using: str, grant: Grant, request: Request) -> LockLease:
        """Return the handle of one granted row. Raises Recounted if those that were granted are not all there are."""
        if not self._is_confirmed:
            self._confirm(using, request)
        return self.lock.handle(using, grant, request)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """See that the rows are there; raise Recounted if ``request`` is not for all of them."""
        others = len(self._others(connection) or self._added(connection))
        if others != request.count:
            raise Recounted(request.count, others)

    def timed_out(self, request: Request, holder: str, trouble: Exception | None) -> AcquireTimeout:
        """Return the error for a request that was not filled in time."""
        return self.lock.timed_out(dataclasses.replace(request, count=1, timeout=self._wait), holder, trouble)

    def _confirm(self, using: str, request: Request) -> None:
        try:
            others = len(self._others(connections[using]))
        except DatabaseUnavailable:
            raise Recounted(request.count, request.count) from None  # all go back, and it is tried again
        if others != request.count:
            raise Recounted(request.count, others)
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
