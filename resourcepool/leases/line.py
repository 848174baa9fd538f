"""The waiters of this process for one pool: takes their tickets, looks what is free, claims what is theirs."""

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.conf import ticket_ttl
from resourcepool.dialect import DbLater, DbNow
from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.leases import search, verbs
from resourcepool.leases.clock import monotonic
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.models import Ticket
from resourcepool.leases.pace import Pace
from resourcepool.leases.retry import retrying
from resourcepool.leases.search import Glance
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Terms
from resourcepool.leases.verbs import Grant
from resourcepool.leases.waiting import Place, Request, Waiter, allot

LONGEST_LINE = 10_000  # tickets looked at; whoever stands further back is not served yet anyway
MOST_ROWS = 1_000  # free rows read at once
SPARE_ROWS = 64  # free rows read beyond the own demand, for those in front
TIDY_EVERY = 60.0  # seconds between two removals of tickets that died
REVIVE_EVERY = 2.0  # seconds
PASS_OVER = 1.0  # seconds for which a row is not tried again after a claim for it failed

logger = logging.getLogger(__name__)


class Line:
    """Used by the poller's thread only; ``Waiter`` is what other threads see."""

    def __init__(self, model: Model, using: str) -> None:
        self.model, self.using = model, using
        self.label = model._meta.label_lower
        self.waiters: list[Waiter] = []
        self.look_at = 0.0
        self.trouble: Exception | None = None
        self._pace = Pace()
        self._passed_over: dict[Any, float] = {}  # rows that look free but could not be had: locked by somebody
        self._tidied_at = self._revived_at = float("-inf")

    def look(self) -> float:
        """Serve whoever can be served; returns when to look again (``look_at``).

        Raises:
            DatabaseUnavailable: nothing was decided; the waiters stand where they stood.
        """
        self._let_go()
        if not self.waiters:
            return self.look_at
        newcomers = [w for w in self.waiters if w.ticket is None or w.ticket.lost.is_set()]
        for waiter in newcomers:
            waiter.ticket = self._take_ticket(waiter)
        selectors = {request.selector for request in self._requests()}
        glances = {selector: self._glance(selector) for selector in selectors}
        if newcomers or any(seen.free for seen in glances.values()):
            self._serve(glances, joined=bool(newcomers))
        else:
            self._revive()
        self._tidy()
        waits = [seen.next_in for seen in glances.values() if seen.next_in is not None]
        self.trouble = None
        now = monotonic()
        if self.waiters:
            self.look_at = min(self.look_at, now + self._pace.pause(now, min(waits, default=None)))
        return self.look_at

    def fail(self, error: Exception) -> None:
        """Tell every waiter that it cannot be served."""
        for waiter in self.waiters:
            waiter.fail(error)
        with contextlib.suppress(DatabaseError, InterfaceError, ResourcePoolError):  # then their tickets lapse
            self._let_go()
        self.waiters = []

    def _requests(self) -> list[Any]:
        return [waiter.request for waiter in self.waiters]

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    def _take_ticket(self, waiter: Waiter) -> Lease:
        request, ttl, sent_at = waiter.request, ticket_ttl(), monotonic()
        row = retrying(
            self._connection,
            lambda: Ticket.objects.using(self.using).create(
                busy_before=DbLater(ttl),
                fence=1,
                holder=request.claim.holder,
                pool=self.label,
                selector=request.selector,
                count=request.count,
                priority=request.priority,
                asked_at=DbNow(),
            ),
        )
        return Lease(Ticket, self.using, Grant(row.pk, 1, sent_at), Terms(ttl=ttl, holder=request.claim.holder))

    def _glance(self, selector: str) -> Glance:
        demand = sum(request.count for request in self._requests() if request.selector == selector)
        return glance(self._connection, self.model, selector, demand)

    def _serve(self, glances: dict[str, Glance], *, joined: bool) -> None:
        places = live_places(self._connection, self.label)
        for selector in {place.selector for place in places} - glances.keys():
            glances[selector] = self._glance(selector)
        now = monotonic()
        self._passed_over = {pk: until for pk, until in self._passed_over.items() if until > now}
        free = {
            selector: [pk for pk in seen.free if pk not in self._passed_over]
            for selector, seen in glances.items()
        }
        served = allot(places, free)
        by_ticket = {waiter.ticket.pk: waiter for waiter in self.waiters if waiter.ticket}
        self._note_place(places, by_ticket, joined)
        for ticket, pks in served.items():
            if ticket in by_ticket:
                self._claim(by_ticket[ticket], pks)
        self._let_go()

    def _note_place(self, places: list[Place], mine: Mapping[int, Waiter], joined: bool) -> None:
        first = next((index for index, place in enumerate(places) if place.ticket in mine), len(places))
        if joined:
            self._pace.joined(first, monotonic())
        else:
            self._pace.advanced(first, monotonic())
        self._pace.stirred()

    def _claim(self, waiter: Waiter, pks: list[Any]) -> None:
        try:
            grants = claim(self._connection, waiter.request, pks)
        except DatabaseUnavailable:
            raise
        except Exception as error:
            logger.exception("cannot serve a waiter for %s", self.label)
            waiter.fail(error)
            return
        if grants is not None:
            self._pace.advanced(-1, monotonic())
            waiter.give(grants)
        else:
            self._passed_over.update(dict.fromkeys(pks, monotonic() + PASS_OVER))

    def _revive(self) -> None:
        if monotonic() - self._revived_at > REVIVE_EVERY:
            self._revived_at = monotonic()
            self.model.revive(self.using)

    def _let_go(self) -> None:
        """Take the tickets of those who left out of the line."""
        gone = [waiter for waiter in self.waiters if waiter.has_left]
        if not gone:
            return
        tickets = [waiter.ticket for waiter in gone if waiter.ticket is not None]
        if tickets:
            rows = verbs.rows_of(self._connection, Ticket).filter(pk__in=[ticket.pk for ticket in tickets])
            retrying(self._connection, lambda: rows._raw_delete(self.using))
        for ticket in tickets:
            keeper.forget(ticket)  # not before: should the process end just now, what is kept is released
        self.waiters = [waiter for waiter in self.waiters if not waiter.has_left]

    def _tidy(self) -> None:
        """Remove tickets whose waiters died, by primary key."""
        if monotonic() - self._tidied_at < TIDY_EVERY:
            return
        self._tidied_at = monotonic()
        tickets = verbs.rows_of(self._connection, Ticket)
        dead = tickets.filter(pool=self.label, busy_before__lt=DbLater(-TIDY_EVERY))
        pks = retrying(self._connection, lambda: list(dead.values_list("pk", flat=True)[:LONGEST_LINE]))
        if pks:
            retrying(self._connection, lambda: tickets.filter(pk__in=pks)._raw_delete(self.using))


def claim_as_last(connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
    """Claim what would be left for ``request`` if it stood at the end of the line; None when nothing is."""
    mine = Place(0, request.selector, request.count)
    places = [*live_places(connection, request.model._meta.label_lower), mine]
    glances = {
        selector: glance(connection, request.model, selector, len(places) + request.count)
        for selector in {place.selector for place in places}
    }
    served = allot(places, {selector: seen.free for selector, seen in glances.items()})
    return claim(connection, request, served[0]) if 0 in served else None


def claim(
    connection: BaseDatabaseWrapper, request: Request, pks: list[Any], *, behind_waiters: bool = False
) -> list[Grant] | None:
    """Claim exactly these rows for ``request``; None when not all of them were free any more."""
    where = request.model.where(request.selector, connection)
    wanted = replace(request.claim, where=where, behind_waiters=behind_waiters)
    if len(pks) > 1:
        return verbs.claim_all(connection, request.model, pks, wanted)
    grant = verbs.claim(connection, request.model, pks[0], wanted)
    return None if grant is None else [grant]


def live_places(connection: BaseDatabaseWrapper, label: str) -> list[Place]:
    """Return who stands in line for the pool ``label``, in the order of service."""
    tickets = verbs.rows_of(connection, Ticket).held().filter(pool=label).order_by("priority", "pk")
    rows = tickets.values_list("pk", "selector", "count")[:LONGEST_LINE]
    return [Place(*row) for row in retrying(connection, lambda: list(rows.all()))]


def glance(connection: BaseDatabaseWrapper, model: Model, selector: str, demand: int) -> Glance:
    """Return what is free for ``selector``, and some to spare for those in front."""
    where = model.where(selector, connection)
    return search.glance(connection, model, where, min(demand + SPARE_ROWS, MOST_ROWS))
