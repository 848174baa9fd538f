"""What all kinds of locks share: a name, checked options, and rows that are made when they are first needed."""

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypedDict

from django.db import IntegrityError, connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import TIMEOUT_GRACE, statement_timeout
from resourcepool.dialect import DbNow, MicrosUntil
from resourcepool.events import Sentence
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.terms import MIN_TTL, Grant, Terms
from resourcepool.locks.hold import Hold, LockLease
from resourcepool.locks.models import MAX_NAME, AbstractNamed
from resourcepool.locks.registry import Key, current_owner, new_holder
from resourcepool.waiting.request import Request

TTL = 30.0  # seconds
MAX_KNOWN_NAMES = 10_000
UNUSED_AFTER = 86_400.0  # seconds without use after which the sweep may remove the rows of a name
KNOWN_FOR = 3_600.0  # seconds for which rows that were just in use are taken to exist
FOREVER = -1  # ``threading``'s timeout that never ends

_known_until: dict[Key, float] = {}  # names in use, and until when the sweep cannot have removed their rows


class LockOptions(TypedDict, total=False):
    """The options that all kinds of locks have; see ``Named``."""

    ttl: object
    timeout: object
    on_lost: Callable[[Hold], object] | None


class Named:
    """Something that is acquired by its name. The ``Source`` (``waiting.request``) of its rows.

    Args:
        name: one line of 1 to 200 characters; case matters.
        ttl: seconds or timedelta after the death of the holder's process until others may have it; a living process
            renews it by itself.
        timeout: seconds or timedelta to wait unless ``acquire`` is told otherwise; None: as long as it takes.
        on_lost: called with the ``Hold``, once, from a background thread, when it is lost; not when it is released.

    Raises:
        BadOption: names the option, the value, and what is allowed.
    """

    model: ClassVar[type[AbstractNamed]]
    lease: ClassVar[type[LockLease]] = LockLease
    kind: ClassVar[str]  # as errors call it

    def __init__(
        self,
        name: str,
        *,
        ttl: object = TTL,
        timeout: object = None,
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
        """The database of its rows."""
        return router.db_for_write(self.model)

    @property
    def ttl(self) -> float:
        """Seconds that it outlives the death of its holder's process."""
        return self._ttl

    @property
    def key(self) -> Key:
        return self.model, self.using, self.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} is known by its name: make another one there")

    def _wait(self, blocking: bool, timeout: object) -> float:
        """Return how many seconds to wait, by ``threading``'s two arguments; raises BadOption."""
        if not options.flag("blocking", blocking):
            if timeout not in (None, FOREVER):
                raise BadOption("timeout", timeout, "None: with blocking=False there is no wait")
            return 0.0
        return self._timeout if timeout is None else wait_seconds("timeout", timeout)

    def _request(self, wait: float, hold: Hold, count: int = 1, priority: int = 0) -> Request:
        terms = Terms(self._ttl, new_holder(current_owner()), holder_is_unique=True, on_lost=hold.when_lost)
        return Request(terms, count=count, timeout=wait, priority=priority, selector=self.name)

    # What waiting needs: see ``waiting.request.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        raise NotImplementedError

    def handle(self, using: str, grant: Grant, request: Request) -> LockLease:
        return self.lease(self.model, using, grant, request.terms)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        self._add_missing(connection)

    def timed_out(self, request: Request, holder: str, trouble: Exception | None) -> AcquireTimeout:
        why = f": {trouble}" if trouble else ""
        if request.timeout and not trouble:
            with contextlib.suppress(DatabaseUnavailable), statement_timeout(TIMEOUT_GRACE):
                why = self._holders_text()
        number = "" if request.count == 1 else f"{request.count} of "
        return AcquireTimeout(f"{number}{self.kind} {self.name!r} did not come free{request.within}{why}")

    def _holders_text(self) -> str:
        return ""

    def _rows(self, connection: BaseDatabaseWrapper) -> Any:
        return verbs.rows_of(connection, self.model).filter(name=self.name)

    def _new_rows(self) -> Sequence[AbstractNamed]:
        raise NotImplementedError

    def _add_if_new(self, connection: BaseDatabaseWrapper) -> bool:
        """Add the rows if there are none; return whether there were none, or they may have been removed just now."""
        which = self.model, connection.alias, self.name  # ``key``, without asking the router again
        if _known_until.get(which, 0.0) > monotonic():
            return False
        idle = retrying(connection, partial(self._idle_seconds, connection))
        if idle is None:
            retrying(connection, partial(self._insert, connection))
            return True
        # The sweep, or a rollback such as ``TestCase``'s, may remove them.
        if idle >= UNUSED_AFTER / 2 or connection.in_atomic_block:
            return True
        if len(_known_until) >= MAX_KNOWN_NAMES:
            _known_until.clear()
        _known_until[which] = monotonic() + KNOWN_FOR
        return False

    def _idle_seconds(self, connection: BaseDatabaseWrapper) -> float | None:
        """Return the seconds since a row was last held, negative while one is; None: there are no rows."""
        latest = self._rows(connection).order_by("-busy_before")
        micros = latest.values_list(MicrosUntil("busy_before"), flat=True).first()
        return None if micros is None else -micros / 1_000_000

    def _add_missing(self, connection: BaseDatabaseWrapper) -> None:
        if not retrying(connection, self._rows(connection).exists):
            retrying(connection, partial(self._insert, connection))

    def _insert(self, connection: BaseDatabaseWrapper) -> None:
        rows = list(self._new_rows())
        for row in rows:
            row.busy_before = DbNow()  # not long ago: the sweep would remove them before they are claimed
        with contextlib.suppress(IntegrityError), transaction.atomic(using=connection.alias):  # added meanwhile
            verbs.rows_of(connection, self.model).bulk_create(rows)

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]


def forget_known_names(**_emptied: object) -> None:
    """Take no rows to exist any more: a database was emptied, by ``manage.py flush`` or a ``TransactionTestCase``."""
    _known_until.clear()


def wait_seconds(name: str, value: object) -> float:
    """Return how many seconds to wait; None and -1: as long as it takes. Raises BadOption."""
    if value is None or value == FOREVER:
        return math.inf
    try:
        return options.seconds(name, value)
    except BadOption as error:
        allowed = Sentence(_("%(span)s; or -1: as long as it takes"), span=error.allowed)
        raise BadOption(name, value, allowed) from None
