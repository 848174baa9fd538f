"""The base of all kinds of locks: a name, validated options, and rows that are created on first use."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from django.db import IntegrityError, connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import TIMEOUT_GRACE, statement_timeout
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.terms import MIN_TTL, Grant, Request, Terms
from resourcepool.locks.lockable import Hold, LockLease, wait_seconds
from resourcepool.locks.models import MAX_NAME, AbstractNamed
from resourcepool.locks.registry import Key, new_holder
from resourcepool.options import Seconds
from resourcepool.signals import is_recorded

TTL = 30.0  # seconds
UNUSED_AFTER = 86_400.0  # seconds; the sweep may remove the rows of a name that was unused for longer


class Named:
    """A lock known by its name; the ``Source`` (``waiting.source``) of its rows.

    Args:
        name: one line of 1 to 200 characters; case matters.
        ttl: seconds or timedelta until others may acquire it after the holder's process crashed; a living process
            renews it automatically.
        timeout: seconds or timedelta to wait, unless ``acquire`` gets another one; None: no limit.
        on_lost: called once with the ``Hold``, from a background thread, when it is lost; not on release.

    Raises:
        BadOption: an option is invalid.
    """

    model: ClassVar[type[AbstractNamed]]
    lease: ClassVar[type[LockLease]] = LockLease
    kind: ClassVar[str]  # in error messages

    def __init__(
        self,
        name: str,
        *,
        ttl: Seconds = TTL,
        timeout: Seconds | None = None,
        on_lost: Callable[[Hold], object] | None = None,
    ) -> None:
        if on_lost is not None:
            options.plain_function("on_lost", on_lost, "a plain function that takes the hold")
        self.name = options.name("name", name, most=MAX_NAME)
        self._ttl = options.seconds("ttl", ttl, least=MIN_TTL)
        self._timeout = wait_seconds("timeout", timeout)
        self._on_lost = on_lost

    @property
    def using(self) -> str:
        """The database alias of its rows."""
        return router.db_for_write(self.model)

    @property
    def ttl(self) -> float:
        """Seconds until it expires after its holder's process crashed."""
        return self._ttl

    @property
    def key(self) -> Key:
        return self.model, self.using, self.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled or copied: create it by name instead")

    def _request(
        self, wait: float, on_lost: Callable[[Any], object] | None = None, count: int = 1, priority: int = 0
    ) -> Request:
        recorded = is_recorded(self.model)
        terms = Terms(self._ttl, new_holder(), holder_is_unique=True, on_lost=on_lost, is_recorded=recorded)
        return Request(terms, count=count, timeout=wait, priority=priority, selector=self.name)

    # ``waiting.source.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        grants = self._claim(connection, request)
        if grants is None and self._add_missing(connection):
            grants = self._claim(connection, request)
        return grants

    def handle(self, using: str, grant: Grant, request: Request) -> LockLease:
        return self.lease(self.model, using, grant, request.terms)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        self._add_missing(connection)

    def timed_out(self, request: Request, holder: str, error: Exception | None) -> AcquireTimeout:
        reason = f": {error}" if error else ""
        if request.timeout and not error:
            with contextlib.suppress(DatabaseUnavailable), statement_timeout(TIMEOUT_GRACE):
                reason = self._holders_text()
        number = "" if request.count == 1 else f"{request.count} of "
        return AcquireTimeout(f"{number}{self.kind} {self.name!r} did not become free{request.within}{reason}")

    def _claim(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        raise NotImplementedError

    def _holders_text(self) -> str:
        return ""

    def _new_rows(self) -> Sequence[AbstractNamed]:
        raise NotImplementedError

    def _rows(self, connection: BaseDatabaseWrapper) -> Any:
        return verbs.rows_of(connection, self.model).filter(name=self.name)

    def _add_missing(self, connection: BaseDatabaseWrapper) -> bool:
        """Add its rows if there are none: a new name, or one that the sweep removed; return whether there were none."""
        if retrying(connection, self._rows(connection).exists):
            return False
        retrying(connection, partial(self._insert, connection))
        return True

    def _insert(self, connection: BaseDatabaseWrapper) -> None:
        rows = list(self._new_rows())
        for row in rows:
            row.busy_before = DbNow()  # so that the sweep does not remove them before they are claimed
        added_concurrently = contextlib.suppress(IntegrityError)
        with added_concurrently, transaction.atomic(using=connection.alias):
            verbs.rows_of(connection, self.model).bulk_create(rows)

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]
