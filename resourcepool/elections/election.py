"""Leader election, with an interface like kazoo's ``Election``: the leader leases a row."""

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Min, Value
from django.db.models.functions import Least

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db.dialect import DbNow, MicrosUntil
from resourcepool.db.retry import retrying
from resourcepool.db.rows import ensure_row
from resourcepool.db.sync_async import ASYNC, Mode, for_asyncio, never, run_sync
from resourcepool.elections.models import MAX_NAME, AbstractElection, Election as ElectionRow, selector
from resourcepool.exceptions import AcquireTimeout, BadOption
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import MAX_LENGTH, MIN_TTL, Grant, Request, Terms, default_holder
from resourcepool.options import Seconds
from resourcepool.signals import EventKind, is_recorded
from resourcepool.waiting import release
from resourcepool.waiting.acquire import acquire, acquire_now
from resourcepool.waiting.models import Ticket
from resourcepool.waiting.source import delivered

TTL = 60.0  # seconds
POLL = 0.5  # seconds
MAX_STANDBYS = 10_000
MAX_NAMED_STANDBYS = 5  # in an error


class Leader(NamedTuple):
    """The leader; ``since``: for how many seconds it has led, None until the beginning of the term is stored."""

    holder: str
    term: int
    since: float | None


class Term(Lease):
    """A term: a lease whose ``fence`` is its number; see ``Lease``. As a context manager it resigns at the end."""

    _next_in_line: ClassVar[Any] = release
    _stores_resignation = False  # whether resigning is stored in the row, so that no lock-delay follows

    @property
    def is_leader(self) -> bool:
        """Whether this process may still rely on leading. No I/O: check it before each step of the work."""
        return self.is_held

    def resign(self, to: str | None = None) -> None:
        """Stop leading; the next standby leads at once.

        Args:
            to: the holder of the standby to hand over to; None: the first in line.

        Raises:
            LeaseLost: the term was lost before.
            BadOption: no such standby; the term goes on.
        """
        if to is None:
            self.release()
            return
        self.ensure_held()
        self._move_to_front(options.text("to", to, most=MAX_LENGTH))
        self._give_up(EventKind.HANDED_OVER, f"handed over to {to}", self._send_release, f"to {to}")

    aresign = for_asyncio(resign)

    def __reduce__(self) -> Any:
        raise TypeError(
            f"term {self.fence} of {self.pk!r} belongs to this process: pass on its name and number instead"
        )

    def _report_leak(self, why: str) -> None:
        """Report nothing: a program that always leads need not keep the handle."""

    def _move_to_front(self, holder: str) -> None:
        connection = connections[self.using]
        tickets = standbys(self.using, self.model, self.pk)
        first = retrying(connection, lambda: tickets.aggregate(Min("priority"))["priority__min"] or 0)
        front = Least(F("priority"), Value(first - 1))
        if not retrying(connection, lambda: tickets.filter(holder=holder).update(priority=front)):
            names = tickets.order_by("priority", "pk").values_list("holder", flat=True)[:MAX_NAMED_STANDBYS]
            raise BadOption("to", holder, "a standby: " + (", ".join(names) or "none at present"))

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        if self._stores_resignation:
            own_row = verbs.rows_of(connection, self.model).filter(pk=self.pk, fence=self.fence)
            retrying(connection, lambda: own_row.update(resigned_term=self.fence))
        return super()._send_release(connection)


def standbys(using: str, model: Any, name: str) -> Any:
    """Return the tickets of the standbys of the election ``name``."""
    return Ticket.objects.using(using).for_rows_of(model).waiting().filter(selector=selector(name))


class Election:
    """An election, which one process at a time leads; if the leader crashes, another one leads after its ttl.

        with Election("reports").campaign() as term:
            while term.is_leader:
                with transaction.atomic(), term.guard():
                    ...

    Not promised: that a former leader stops in time if it does not check (``is_leader``, ``guard``).

    Args:
        name: one line of 1 to 200 characters; campaigns of one name compete.
        model: the model of its row; elections of different models are independent.
        ttl: seconds or timedelta between a crash of the leader and the next term.
        lock_delay: seconds or timedelta that a new leader waits after a term that was not resigned, so that the old
            leader can finish its work (as Consul's lock-delay). All campaigns must use the same value.
        on_elected: called with the ``Term`` in the campaigning thread, before ``campaign`` returns it.
        on_lost: called with the ``Term``, once, from a background thread, when it is lost; not when it is resigned.

    Raises:
        BadOption: names the option, the value and the allowed values.
    """

    def __init__(
        self,
        name: str,
        model: type[AbstractElection] = ElectionRow,
        *,
        ttl: Seconds = TTL,
        lock_delay: Seconds = 0,
        on_elected: Callable[[Term], object] | None = None,
        on_lost: Callable[[Term], object] | None = None,
    ) -> None:
        for option, value in (("on_elected", on_elected), ("on_lost", on_lost)):
            if value is not None:
                options.plain_function(option, value, "a plain function that takes the term")
        self.name, self.model = options.text("name", name, most=MAX_NAME), model
        self._ttl = options.seconds("ttl", ttl, least=MIN_TTL)
        self._lock_delay = options.seconds("lock_delay", lock_delay)
        self._on_elected, self._on_lost = on_elected, on_lost

    @property
    def using(self) -> str:
        """The database that decides the election."""
        return router.db_for_write(self.model)

    def campaign(self, timeout: Seconds | None = None, *, stop: Callable[[], bool] = never) -> Term:
        """Wait to lead; return the term.

        Args:
            timeout: seconds or timedelta, in addition to a lock-delay; None: no limit.
            stop: called regularly; if it returns True, the wait and the lock-delay end.

        Raises:
            AcquireTimeout: others led until the timeout, or until ``stop``.
            ClaimInTransaction: a transaction is open.
            LeaseLost: the term was lost before it began, such as in the lock-delay.
            DatabaseUnavailable: the election was won, but this could not be stored; the term is not held.
        """
        return run_sync(self._campaign, timeout, stop)

    async def acampaign(self, timeout: Seconds | None = None, *, stop: Callable[[], bool] = never) -> Term:
        """``campaign`` for asyncio; waiting occupies no thread. ``stop`` is a plain function, too."""
        return await self._campaign(ASYNC, timeout, stop)

    def try_now(self) -> Term | None:
        """Return the term; None if another process leads, or is next. Waits only for the lock-delay.

        Raises:
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: the election was not decided.
        """
        return run_sync(self._try_now)

    async def atry_now(self) -> Term | None:
        """``try_now`` for asyncio."""
        return await self._try_now(ASYNC)

    def leader(self) -> Leader | None:
        """Return the current leader, by the database's clock; None: no leader. Raises DatabaseUnavailable."""
        connection = connections[self.using]
        rows = verbs.rows_of(connection, self.model).filter(pk=self.name).held()
        columns = ("holder", "fence", "elected_term", MicrosUntil("elected_at"))
        row = retrying(connection, rows.values_list(*columns).first)
        if row is None:
            return None
        holder, term, elected_term, micros = row
        return Leader(holder, term, max(0.0, -micros / 1_000_000) if term == elected_term else None)

    def standbys(self, limit: int = 100) -> list[str]:
        """Return up to ``limit`` standbys, the next leader first."""
        limit = options.whole("limit", limit, least=1, most=MAX_STANDBYS)
        tickets = standbys(self.using, self.model, self.name).order_by("priority", "pk")
        holders = tickets.values_list("holder", flat=True)[:limit]
        return retrying(connections[self.using], lambda: list(holders.all()))

    def _request(self, timeout: Seconds | None) -> Request:
        wait = math.inf if timeout is None else options.seconds("timeout", timeout)
        recorded = is_recorded(self.model)
        terms = Terms(
            self._ttl, default_holder(), holder_is_unique=True, on_lost=self._on_lost, is_recorded=recorded
        )
        return Request(terms, timeout=wait, selector=selector(self.name))

    async def _campaign(self, mode: Mode, timeout: Seconds | None, stop: Callable[[], bool]) -> Term:
        options.plain_function("stop", stop, "a plain function that returns whether to stop")
        request = self._request(timeout)
        return await self._begin(mode, await acquire(mode, self, request, stop=stop), request, stop)

    async def _try_now(self, mode: Mode) -> Term | None:
        request = self._request(0.0)
        leases = await acquire_now(mode, self, request)
        return None if leases is None else await self._begin(mode, leases, request, never)

    async def _begin(self, mode: Mode, leases: list[Any], request: Request, stop: Callable[[], bool]) -> Term:
        term: Term = leases[0]
        try:
            await self._keep_lock_delay(mode, term, await mode.call(self._store_beginning, term), request, stop)
            return await mode.call(self._deliver, term)
        except BaseException:
            await mode.call(term._release_quietly)
            raise

    async def _keep_lock_delay(
        self, mode: Mode, term: Term, ends_at: float, request: Request, stop: Callable[[], bool]
    ) -> None:
        while term.is_leader and (left := ends_at - monotonic()) > 0:
            if stop():
                raise self.timed_out(request, term.holder, None)
            pause = min(left, POLL)
            await mode.either(partial(term.lost.wait, pause), partial(asyncio.sleep, pause, False))

    def _store_beginning(self, term: Term) -> float:
        """Store the beginning of the term; return the end of the lock-delay, by this process's clock."""
        connection = connections[term.using]
        own_row = verbs.rows_of(connection, self.model).filter(pk=term.pk, fence=term.fence)
        before = (0, 0)
        if self._lock_delay:
            columns = own_row.values_list("elected_term", "resigned_term")
            before = retrying(connection, lambda: columns.first() or before)
        retrying(connection, lambda: own_row.update(elected_at=DbNow(), elected_term=term.fence))
        elected, resigned = before
        return monotonic() + self._lock_delay if resigned < elected else 0.0

    def _deliver(self, term: Term) -> Term:
        term.ensure_held()
        # Not earlier: after a term that ended before this point, the next leader must wait for the lock-delay.
        term._stores_resignation = bool(self._lock_delay)
        delivered([term])
        if self._on_elected is not None:
            self._on_elected(term)
        return term

    def _ensure_row(self, connection: BaseDatabaseWrapper) -> bool:
        """Create the row if it is missing; return whether it was."""
        return retrying(connection, partial(ensure_row, self.model, connection.alias, self.name))

    # Used by waiting: see ``waiting.source.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        grant = verbs.claim(connection, self.model, self.name, request.terms)
        if grant is None and self._ensure_row(connection):
            grant = verbs.claim(connection, self.model, self.name, request.terms)
        return None if grant is None else [grant]

    def handle(self, using: str, grant: Grant, request: Request) -> Term:
        return Term(self.model, using, grant, request.terms)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        self._ensure_row(connection)

    def timed_out(self, request: Request, holder: str, error: Exception | None) -> AcquireTimeout:
        why = f": {error}" if error else ""
        return AcquireTimeout(f"election {self.name!r} was not won{request.within}{why}")
