"""The base of all kinds of locks: a name, validated options, and rows that are created on first use."""

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from django.db import IntegrityError, connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import TIMEOUT_GRACE, statement_timeout
from resourcepool.events import Sentence
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.terms import MIN_TTL, Grant, Request, Terms
from resourcepool.locks.lockable import Hold, LockLease
from resourcepool.locks.models import MAX_NAME, AbstractNamed
from resourcepool.locks.registry import Key, current_owner, new_holder
from resourcepool.options import Seconds
from resourcepool.signals import is_recorded
from resourcepool.translation import gettext_noop as _

TTL = 30.0  # seconds
UNUSED_AFTER = 86_400.0  # seconds; the sweep may remove the rows of a name that was unused for longer
FOREVER = -1  # the infinite timeout of ``threading``


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

    def _wait(self, blocking: bool, timeout: Seconds | None) -> float:
        """Return the seconds to wait, from the two arguments of ``threading``; raises BadOption."""
        if blocking is not True and not options.flag("blocking", blocking):
            if timeout not in (None, FOREVER):
                raise BadOption("timeout", timeout, "None with blocking=False")
            return 0.0
        return self._timeout if timeout is None else wait_seconds("timeout", timeout)

    def _request(self, wait: float, hold: Hold, count: int = 1, priority: int = 0) -> Request:
        holder, recorded = new_holder(current_owner()), is_recorded(self.model)
        terms = Terms(self._ttl, holder, holder_is_unique=True, on_lost=hold._when_lost, is_recorded=recorded)
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


def wait_seconds(name: str, value: object) -> float:
    """Return the seconds to wait; None and -1: no limit. Raises BadOption."""
    if value is None or value == FOREVER:
        return math.inf
    try:
        return options.seconds(name, value)
    except BadOption as error:
        allowed = Sentence(_("%(span)s, or -1 for no limit"), span=error.allowed)
        raise BadOption(name, value, allowed) from None
