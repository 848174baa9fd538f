"""Leader election: a lease of one row, so a leader that dies is followed by another one when its ttl is over.

The vocabulary is kazoo's ``Election``, and document 002's (R2.3).
"""

import asyncio
import math
from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.async_threads import in_thread
from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow, MicrosUntil
from resourcepool.elections.models import MAX_NAME, AbstractElection, Leadership, selector
from resourcepool.elections.term import Leader, Term, standbys
from resourcepool.exceptions import AcquireTimeout
from resourcepool.leases import verbs
from resourcepool.leases.terms import MIN_TTL, Grant, Terms, default_holder
from resourcepool.signals import is_recorded
from resourcepool.waiting.acquire import aacquire, acquire, atry_now, try_now
from resourcepool.waiting.lease import delivered
from resourcepool.waiting.request import Request

TTL = 60.0  # seconds
NAP = 0.5  # seconds
MOST_STANDBYS = 10_000


class Election:
    """One thing that only one process at a time may lead.

        with Election("reports").campaign() as term:
            while term.is_leader:
                with transaction.atomic(), term.guard():
                    ...

    Not promised: that a former leader which does not look (``is_leader``, ``guard``) stops in time.

    Args:
        name: of the election; whoever gives the same one campaigns against each other.
        model: in whose table its row is; each has elections of its own.
        ttl: seconds or timedelta after which somebody else may lead when the leader's process has died.
        lock_delay: seconds or timedelta that a new leader waits after a term that was not resigned: for what the old
            one may still be doing without looking. Every campaigner gives the same. (Consul's lock-delay, R2.3.)
        on_elected: called with the ``Term`` in the campaigning thread, before ``campaign`` returns it.
        on_lost: called with the ``Term``, once, from a background thread, when it is lost; not when it is resigned.

    Raises:
        BadOption: the name is no line of 1 to 200 characters, or another option is not allowed.
    """

    def __init__(
        self,
        name: str,
        model: type[AbstractElection] = Leadership,
        *,
        ttl: object = TTL,
        lock_delay: object = 0,
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
        self._looked_for: Request | None = None  # whose row is there, as far as known

    @property
    def using(self) -> str:
        """The database on which it is decided."""
        return router.db_for_write(self.model)

    def campaign(self, timeout: object = None, *, stop: Callable[[], bool] = lambda: False) -> Term:
        """Return the term of this process as the leader, after waiting in line for up to ``timeout``.

        Args:
            timeout: seconds or timedelta; None: as long as it takes. A lock-delay comes on top of it.
            stop: asked now and then; True ends the wait, and the lock-delay.

        Raises:
            AcquireTimeout: others led all that time, or until ``stop``.
            ClaimInTransaction: a transaction is open.
            LeaseLost: the term was lost before it began, for example in the lock-delay.
        """
        options.plain_function("stop", stop, "a plain function, which tells whether to end")
        request = self._request(timeout)
        return self._begin(acquire(self, request, stop), request, stop)

    async def acampaign(self, timeout: object = None, *, stop: Callable[[], bool] = lambda: False) -> Term:
        """``campaign`` for asyncio; waiting occupies no thread. ``stop`` is a plain function here, too."""
        options.plain_function("stop", stop, "a plain function, which tells whether to end")
        request = self._request(timeout)
        return await self._abegin(await aacquire(self, request, stop=stop), request, stop)

    def try_now(self) -> Term | None:
        """Return the term of this process as the leader; None when somebody else leads, or is next.

        It waits for nobody, but for the lock-delay when it has won.

        Raises:
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: it was not decided.
        """
        request = self._request(0.0)
        leases = try_now(self, request)
        return None if leases is None else self._begin(leases, request)

    async def atry_now(self) -> Term | None:
        """``try_now`` for asyncio."""
        request = self._request(0.0)
        leases = await atry_now(self, request)
        return None if leases is None else await self._abegin(leases, request)

    def leader(self) -> Leader | None:
        """Return who leads at this moment of the database's clock; None: nobody. Raises DatabaseUnavailable."""
        connection = connections[self.using]
        rows = verbs.rows_of(connection, self.model).filter(pk=self.name).held()
        columns = ("holder", "fence", "elected_term", MicrosUntil("elected_at"))
        row = retrying(connection, rows.values_list(*columns).first)
        if row is None:
            return None
        holder, term, elected_term, micros = row
        return Leader(holder, term, max(0.0, -micros / 1_000_000) if term == elected_term else None)

    def standbys(self, limit: int = 100) -> list[str]:
        """Return the holders that wait to lead, the next leader first; at most ``limit`` of them."""
        limit = options.whole("limit", limit, least=1, most=MOST_STANDBYS)
        line = standbys(self.using, self.model, self.name).order_by("priority", "pk")
        holders = line.values_list("holder", flat=True)[:limit]
        return retrying(connections[self.using], lambda: list(holders.all()))

    def _request(self, timeout: object) -> Request:
        wait = math.inf if timeout is None else options.seconds("timeout", timeout)
        is_told = is_recorded(self.model)
        terms = Terms(
            self._ttl, default_holder(), holder_is_unique=True, on_lost=self._on_lost, is_recorded=is_told
        )
        return Request(terms, timeout=wait, selector=selector(self.name))

    def _begin(self, leases: list[Any], request: Request, stop: Callable[[], bool] = lambda: False) -> Term:
        term: Term = leases[0]
        try:
            self._keep_lock_delay(term, self._note(term), request, stop)
            return self._deliver(term)
        except BaseException:
            term.abandon()
            raise

    def _keep_lock_delay(self, term: Term, over_at: float, request: Request, stop: Callable[[], bool]) -> None:
        while term.is_leader and (left := over_at - monotonic()) > 0:
            if stop():
                raise self.timed_out(request, term.holder, None)
            term.lost.wait(min(left, NAP))

    async def _abegin(
        self, leases: list[Any], request: Request, stop: Callable[[], bool] = lambda: False
    ) -> Term:
        term: Term = leases[0]
        try:
            await self._akeep_lock_delay(term, await in_thread(self._note, term), request, stop)
            return await in_thread(self._deliver, term)
        except BaseException:
            await in_thread(term.abandon)
            raise

    async def _akeep_lock_delay(
        self, term: Term, over_at: float, request: Request, stop: Callable[[], bool]
    ) -> None:
        while term.is_leader and (left := over_at - monotonic()) > 0:
            if stop():
                raise self.timed_out(request, term.holder, None)
            await asyncio.sleep(min(left, NAP))

    def _note(self, term: Term) -> float:
        """Write down that the term has begun; return when the lock-delay is over, by this process's clock."""
        connection = connections[term.using]
        mine = verbs.rows_of(connection, self.model).filter(pk=term.pk, fence=term.fence)
        before = (0, 0)
        if self._lock_delay:
            columns = mine.values_list("elected_term", "resigned_term")
            before = retrying(connection, lambda: columns.first() or before)
        retrying(connection, lambda: mine.update(elected_at=DbNow(), elected_term=term.fence))
        elected, resigned = before
        return monotonic() + self._lock_delay if resigned < elected else 0.0

    def _deliver(self, term: Term) -> Term:
        term.ensure_held()
        # Only now: a term that ends before, for example in the lock-delay, leaves that to the next one.
        term.is_noted = bool(self._lock_delay)
        delivered([term])
        if self._on_elected is not None:
            self._on_elected(term)
        return term

    # What waiting needs: see ``waiting.request.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim the row if nobody leads; it is added when it is not there."""
        grant = verbs.claim(connection, self.model, self.name, request.terms)
        if grant is None and retrying(connection, lambda: self._create(connection.alias)):
            grant = verbs.claim(connection, self.model, self.name, request.terms)
        self._looked_for = request
        return None if grant is None else [grant]

    def handle(self, using: str, grant: Grant, request: Request) -> Term:
        """Return the handle of the term that was granted."""
        return Term(self.model, using, grant, request.terms)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """See that the row is there, unless ``claim_free`` just did: while many wait, that is not asked first."""
        if self._looked_for is not request:
            retrying(connection, lambda: self._create(connection.alias))

    def timed_out(self, request: Request, holder: str, trouble: Exception | None) -> AcquireTimeout:
        """Return the error for a campaign that was not won in time."""
        why = f": {trouble}" if trouble else ""
        return AcquireTimeout(f"election {self.name!r} was not won within {request.timeout:g} s{why}")

    def _create(self, using: str) -> bool:
        """Add the row if it is not there; tells whether this was so."""
        rows: Any = self.model._base_manager.using(using)
        if rows.filter(pk=self.name).exists():
            return False
        try:
            with transaction.atomic(using=using):
                rows.create(pk=self.name)
        except IntegrityError:
            return True  # somebody else just did
        return True
