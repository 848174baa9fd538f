"""Leader election: a lease of one row, so a leader that dies is followed by another one when its ttl is over.

The vocabulary is kazoo's ``Election``, and document 002's (R2.3).
"""

import math
from typing import Any, NamedTuple

from django.db import IntegrityError, connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow, MicrosUntil
from resourcepool.elections.models import MAX_NAME, AbstractElection, Leadership, selector
from resourcepool.exceptions import AcquireTimeout
from resourcepool.leases import verbs
from resourcepool.leases.terms import Grant, Terms, default_holder
from resourcepool.waiting.acquire import acquire, try_now
from resourcepool.waiting.lease import AwaitedLease, delivered
from resourcepool.waiting.request import Request

TTL = 60.0  # seconds after which somebody else may lead when the leader's process has died


class Leader(NamedTuple):
    """Who leads: ``since`` is in seconds, None while the term is so new that this is not written yet."""

    holder: str
    term: int
    since: float | None


class Term(AwaitedLease):
    """One term of a leader: a lease, whose ``fence`` is the number of the term. See ``Lease`` for what it promises.

    As a context manager it resigns at the end.
    """

    @property
    def is_leader(self) -> bool:
        """Whether this process may still rely on being the leader. No I/O, so ask before each step of the work."""
        return self.is_held

    def resign(self) -> None:
        """Give the leadership up: the first in line has it at once. Raises LeaseLost if it was lost before."""
        self.release()


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

    Raises:
        BadOption: the name is no line of 1 to 200 characters.
    """

    def __init__(self, name: str, model: type[AbstractElection] = Leadership) -> None:
        self.name, self.model = options.text("name", name, most=MAX_NAME), model
        self._looked_for: Request | None = None  # whose row is there, as far as known

    @property
    def using(self) -> str:
        """The database on which it is decided."""
        return router.db_for_write(self.model)

    def campaign(self, timeout: object = None) -> Term:
        """Return the term of this process as the leader, after waiting in line for up to ``timeout``.

        Args:
            timeout: seconds or timedelta; None: as long as it takes.

        Raises:
            AcquireTimeout: others led all that time.
            ClaimInTransaction: a transaction is open.
        """
        wait = math.inf if timeout is None else options.seconds("timeout", timeout)
        return self._begin(acquire(self, self._request(wait)))

    def try_now(self) -> Term | None:
        """Return the term of this process as the leader; None when somebody else leads, or is next.

        Raises:
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: it was not decided.
        """
        leases = try_now(self, self._request(0.0))
        return None if leases is None else self._begin(leases)

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

    def _request(self, timeout: float) -> Request:
        terms = Terms(TTL, default_holder(), holder_is_unique=True)
        return Request(terms, timeout=timeout, selector=selector(self.name))

    def _begin(self, leases: list[Any]) -> Term:
        term: Term = leases[0]
        try:
            connection = connections[term.using]
            mine = verbs.rows_of(connection, self.model).filter(pk=term.pk, fence=term.fence)
            retrying(connection, lambda: mine.update(elected_at=DbNow(), elected_term=term.fence))
            return delivered([term])[0]
        except BaseException:
            term.abandon()
            raise

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
