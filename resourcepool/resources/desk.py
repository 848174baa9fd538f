"""Where orders are filled: at once when something is free and nobody waits, else by standing in line."""

import asyncio
import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.exceptions import BadOption, ClaimInTransaction, DatabaseUnavailable
from resourcepool.leases import line, verbs
from resourcepool.leases.chores import chores
from resourcepool.leases.clock import monotonic
from resourcepool.leases.poller import poller
from resourcepool.leases.retry import retrying
from resourcepool.leases.verbs import Claim, Grant
from resourcepool.leases.waiting import Request, Waiter
from resourcepool.resources import selectors
from resourcepool.resources.crowd import Crowd
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.order import Order
from resourcepool.resources.state import Status
from resourcepool.resources.strategy import Spread, by_weight
from resourcepool.resources.threads import in_thread
from resourcepool.resources.timeout import timed_out

if TYPE_CHECKING:
    from resourcepool.resources.pool import Pool

ROUNDS = 10  # of reading what is free and losing the race for all of it
REMEMBERED = 10_000  # holders whose last resource is known to "sticky"
TRIES_PER_LOOK = 2
LONGEST_QUICK_TRY = 0.5  # seconds, then one stands in line: rows that look free may be locked
NAP = 0.5  # seconds

Leases = list[ResourceLease]


NO_TICKET = "the database did not take a ticket for the line in that time; it is slow, or locked by somebody"


class Desk:
    """Fills the orders of one pool."""

    def __init__(self, pool: "Pool") -> None:
        self._pool, self._model = pool, pool.model
        self._spread = Spread()
        self._last: OrderedDict[Any, Any] = OrderedDict()
        self._crowd = Crowd()

    def obtain(self, asked: Order, stop: Callable[[], bool] = lambda: False) -> Leases:
        """Return what was ordered, waiting for it up to its timeout or until ``stop()``; raises AcquireTimeout."""
        began = monotonic()
        troubles: list[Exception] = []
        leases = self._at_once(asked, troubles)
        if leases is not None:
            return leases
        waiter = poller.join(self._request(asked))
        try:
            leases = _outcome(waiter, began + asked.timeout, stop)
        except TimeoutError as error:
            return self._too_late(asked, waiter, error, troubles)
        except BaseException:
            _abandon(self._leave(waiter))
            raise
        self._crowd.served(waiter, began)
        return leases

    async def aobtain(self, asked: Order) -> Leases:
        """``obtain`` for asyncio; waiting occupies no thread."""
        began = monotonic()
        troubles: list[Exception] = []
        leases = await in_thread(_loaded, self._at_once, asked, troubles, undo=_abandon)
        if leases is not None:
            return leases
        waiter = poller.join(self._request(asked))
        try:
            return await self._aoutcome(waiter, asked, began, troubles)
        except BaseException:
            if granted := self._leave(waiter):
                await in_thread(_abandon, granted)
            raise

    def try_now(self, asked: Order) -> Leases | None:
        """Return what was ordered if it is free and nobody in line has a better right to it, else None."""
        connection = self._connection
        _refuse_open_transaction(connection, asked)
        request = self._request(asked, connection.alias)
        grants = self._quick(connection, asked, request)
        if grants is None and verbs.anybody_waits(connection, self._model):
            grants = line.claim_as_last(connection, request)
        return None if grants is None else self._leases(asked, connection.alias, grants)

    async def atry_now(self, asked: Order) -> Leases | None:
        """``try_now`` for asyncio."""
        return await in_thread(_loaded, self.try_now, asked, undo=_abandon)

    def freed(self, lease: ResourceLease) -> None:
        """Note a release made in this process."""
        self._last[_rememberer(lease.order)] = lease.pk
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
        poller.look_now(self._model, lease.using)

    def refuse_open_transaction(self, asked: Order) -> None:
        """Raise ClaimInTransaction if the caller has a transaction open and did not ask for that by name."""
        _refuse_open_transaction(self._connection, asked)

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self._pool.using]

    def _at_once(self, asked: Order, troubles: list[Exception]) -> Leases | None:
        """Like ``try_now``, for somebody who is willing to wait: then the line decides who is next."""
        connection = self._connection
        _refuse_open_transaction(connection, asked)
        if asked.timeout and not connection.in_atomic_block:
            if poller.trouble(self._model, connection.alias):
                return None  # others wait for it already; trying for oneself takes the time of retries
            if asked.count == 1 and self._crowd.is_likely():
                return None
        request = self._request(asked, connection.alias)
        try:
            grants = self._quick(connection, asked, request)
        except DatabaseUnavailable as error:
            if connection.in_atomic_block or not asked.timeout:
                raise
            troubles.append(error)
            return None  # it may be back in time
        if grants is None and not asked.timeout and verbs.anybody_waits(connection, self._model):
            grants = line.claim_as_last(connection, request)  # there is no time to stand in line
        if grants is not None:
            return self._leases(asked, connection.alias, grants)
        if not asked.timeout:
            raise timed_out(self._pool, asked, None)
        self._refuse_impossible(connection, asked)
        if connection.in_atomic_block:  # the line is served on another connection, which cannot see this one
            raise timed_out(self._pool, asked, None)
        return None

    def _quick(self, connection: BaseDatabaseWrapper, asked: Order, request: Request) -> list[Grant] | None:
        if asked.strategy == "sticky" and asked.count == 1:
            last = self._last.pop(_rememberer(asked), None)
            grant = None if last is None else self._claim(connection, request, [last])
            if grant is not None:
                return grant
        tried: set[Any] = set()  # a row that is locked by a long transaction looks free every time
        gives_up_at = monotonic() + LONGEST_QUICK_TRY
        for _ in range(ROUNDS):
            rows = [pk for pk in self._candidates(connection, asked, request) if pk not in tried]
            if len(rows) < asked.count:
                chores.revive(self._model, self._pool.using)
                return None
            # Not many of one look: who stands in line by now has a better right, and the next look shows that.
            for start in range(0, len(rows) - asked.count + 1, asked.count)[:TRIES_PER_LOOK]:
                grants = self._claim(connection, request, rows[start : start + asked.count])
                if grants is not None:
                    self._spread.won()
                    return grants
                self._spread.lost_race()
                if asked.count == 1:
                    tried.add(rows[start])
            if monotonic() > gives_up_at:
                return None
        return None

    def _candidates(self, connection: BaseDatabaseWrapper, asked: Order, request: Request) -> list[Any]:
        where = self._model.where(request.selector, connection)
        if asked.strategy == "random":
            return by_weight(connection, self._model, where, asked.count)
        return self._spread.candidates(connection, self._model, where, asked.count)

    def _claim(self, connection: BaseDatabaseWrapper, request: Request, pks: list[Any]) -> list[Grant] | None:
        return line.claim(connection, request, pks, behind_waiters=True)

    def _request(self, asked: Order, using: str | None = None) -> Request:
        using = using or self._pool.using
        return Request(
            model=self._model,
            using=using,
            selector=asked.selector,
            count=asked.count,
            priority=asked.priority,
            claim=Claim(asked.terms.ttl, asked.terms.holder, asked.holder_is_unique),
            leases=lambda grants: list(self._leases(asked, using, grants)),
            rest=self._crowd.rest(asked.timeout),
        )

    def _leases(self, asked: Order, using: str, grants: list[Grant]) -> Leases:
        return [ResourceLease(self._pool, using, grant, asked) for grant in grants]

    def _too_late(self, asked: Order, waiter: Waiter, error: TimeoutError, troubles: list[Exception]) -> Leases:
        leases = _granted(waiter.give_up())
        if leases:
            return leases
        poller.look_now(self._model, self._pool.using)  # takes the ticket out of the line
        if waiter.ticket is not None:
            troubles = []  # the database came back, and still nothing was free
        trouble = poller.trouble(self._model, self._pool.using) or next(iter(troubles), None)
        if trouble is None and waiter.ticket is None:
            trouble = DatabaseUnavailable(NO_TICKET)
        raise timed_out(self._pool, asked, trouble) from error

    async def _aoutcome(self, waiter: Waiter, asked: Order, began: float, troubles: list[Exception]) -> Leases:
        try:
            async with asyncio.timeout(began + asked.timeout - monotonic()):
                leases = _granted(await asyncio.shield(asyncio.wrap_future(waiter.outcome)))
        except TimeoutError as error:
            leases = await in_thread(self._too_late, asked, waiter, error, troubles)
        self._crowd.served(waiter, began)
        await in_thread(_load, leases)
        return leases

    def _leave(self, waiter: Waiter) -> Leases:
        """Have ``waiter`` leave the line, whatever came of it; returns what it was granted before. No I/O."""
        if waiter.outcome.cancel():  # the question comes first: the answer to any other may change meanwhile
            poller.look_now(self._model, self._pool.using)  # takes the ticket out of the line
        elif waiter.outcome.exception() is None:
            return _granted(waiter.outcome.result())
        return []

    def _refuse_impossible(self, connection: BaseDatabaseWrapper, asked: Order) -> None:
        """An order that can never be filled would keep what there is reserved, and starve those behind it."""
        if asked.count > 1:
            wanted = selectors.wanted(self._model, asked.selector)
            rows = verbs.rows_of(connection, self._model).filter(wanted).exclude(status=Status.RETIRED)
            there_are = retrying(connection, rows.count)
            if there_are < asked.count:
                raise BadOption("count", asked.count, f"at most {there_are}: so many match and are not retired")


def _rememberer(asked: Order) -> object:
    """Who "the one I had last" is about: this thread, or whoever goes by the name the caller gave."""
    return threading.get_ident() if asked.holder_is_unique else asked.terms.holder


def _outcome(waiter: Waiter, until: float, stop: Callable[[], bool]) -> Leases:
    """Wait for what the waiter is granted; raises TimeoutError when it is nothing until then."""
    while not waiter.has_left and not stop() and (left := until - monotonic()) > 0:
        # In naps, because Python may overlook a signal that arrives just as the main thread goes to sleep.
        with contextlib.suppress(TimeoutError):
            return _granted(waiter.outcome.result(min(left, NAP)))
    return _granted(waiter.outcome.result(0))


def _granted(leases: Any) -> Leases:
    return list(leases)


def _loaded(obtain: Callable[..., Leases | None], *args: Any) -> Leases | None:
    """Obtain leases and read their resources: under asyncio ``lease.resource`` must not touch the database."""
    leases = obtain(*args)
    try:
        _load(leases)
    except BaseException:
        _abandon(leases)
        raise
    return leases


def _load(leases: Leases | None) -> None:
    for lease in leases or ():
        lease.resource  # noqa: B018 (reads it)


def _abandon(leases: Leases | None) -> None:
    for lease in leases or ():
        lease.let_go()  # all of them first: what interrupts the release of one does not keep the others
    for lease in leases or ():
        lease.abandon()


def _refuse_open_transaction(connection: BaseDatabaseWrapper, asked: Order) -> None:
    # The transaction that Django's TestCase wraps around a test is not the caller's.
    blocks = [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]
    is_open = connection.connection is not None
    autocommit = connection.autocommit if is_open else connection.settings_dict["AUTOCOMMIT"]
    manual = not autocommit and not connection.in_atomic_block
    if (blocks or manual) and not asked.allow_in_transaction:
        raise ClaimInTransaction(
            f"a transaction is open on database {connection.alias!r}: a lease claimed inside it would be "
            "invisible to others until the commit and undone by a rollback. Acquire before "
            "transaction.atomic() (ATOMIC_REQUESTS opens one for every view), or pass "
            "allow_in_transaction=True if you mean it"
        )
