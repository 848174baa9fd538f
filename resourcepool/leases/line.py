"""The waiters of this process who want the same: takes their tickets, looks what is free, claims what is theirs."""

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.conf import ticket_ttl
from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.leases import search, tickets, verbs
from resourcepool.leases.chores import TIDY_EVERY, chores
from resourcepool.leases.clock import monotonic
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.lying import Lying
from resourcepool.leases.models import Ticket
from resourcepool.leases.pace import Pace
from resourcepool.leases.search import Glance
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Terms
from resourcepool.leases.verbs import Grant
from resourcepool.leases.waiting import Place, Request, Waiter, allot, left_over
from resourcepool.leases.where import Where

MOST_ROWS = 1_000  # free rows read at once
SPARE_ROWS = 8  # free rows read beyond the demand

logger = logging.getLogger(__name__)


class Line:
    """Used by the poller's thread only; ``Waiter`` is what other threads see."""

    def __init__(self, model: Model, using: str, selector: str) -> None:
        self.model, self.using, self.selector = model, using, selector
        self.label = model._meta.label_lower
        self.waiters: list[Waiter] = []
        self.look_at = 0.0
        self.trouble: Exception | None = None
        self._pace = Pace()
        self._lying = Lying()
        self._ahead, self._were_free = 0, 0
        self._is_mixed = self._somebody_is_new = False

    def look(self) -> float:
        """Serve whoever can be served; returns when to look again (``look_at``).

        Raises:
            DatabaseUnavailable: nothing was decided; the waiters stand where they stood.
        """
        self._let_go()
        if not self.waiters:
            return self.look_at
        self._take_tickets()
        look_at = min(waiter.not_before for waiter in self.waiters)
        if look_at > monotonic():
            self.look_at = min(self.look_at, look_at)
            return self.look_at
        seen = self._look_around()
        if not seen.free:
            chores.revive(self.model, self.using)
        elif self._ahead < len(seen.free) or self._lying.is_any_left(self._rank(seen), monotonic()):
            self._serve(seen)
        for waiter in self.waiters:
            waiter.had_to_wait = True
        self._tidy()
        self.trouble = None
        now = monotonic()
        if self.waiters:
            self.look_at = min(self.look_at, now + self._pace.pause(now, seen.next_in))
        return self.look_at

    def fail(self, error: Exception) -> None:
        """Tell every waiter that it cannot be served."""
        for waiter in self.waiters:
            waiter.fail(error)
        with contextlib.suppress(DatabaseError, InterfaceError, ResourcePoolError):
            self._let_go()
        for waiter in self.waiters:
            if waiter.ticket is not None:
                keeper.forget(waiter.ticket)  # it lapses
        self.waiters = []

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    def _take_tickets(self) -> None:
        """See that everybody has a ticket."""
        for waiter in [w for w in self.waiters if w.ticket is None or w.ticket.lost.is_set()]:
            holder, ttl, sent_at = waiter.request.claim.holder, ticket_ttl(), monotonic()
            grant = Grant(tickets.take(self._connection, waiter.request, ttl), 1, sent_at)
            waiter.ticket = Lease(Ticket, self.using, grant, Terms(ttl=ttl, holder=holder))
            waiter.not_before = sent_at + waiter.request.rest
            self._somebody_is_new = True

    def _look_around(self) -> Glance:
        """See what is free for us, and how many stand in front of the first of ours."""
        self.waiters.sort(key=lambda waiter: (waiter.request.priority, waiter.number))
        first = self.waiters[0]
        ahead = tickets.ahead(self._connection, self.label, self.selector, first.request.priority, first.number)
        demand = sum(waiter.request.count for waiter in self.waiters)
        seen = self._glance(self.selector, demand + min(self._ahead, 2 * self._were_free), ahead)
        self._ahead, self._is_mixed, is_skipped = tickets.others_ahead(seen.ahead)
        if is_skipped:
            tickets.unskip(self._connection, [waiter.number for waiter in self.waiters])
        if seen.is_cut_short and len(seen.free) < demand + self._ahead:
            seen = self._glance(self.selector, demand + self._ahead, ahead)
        self._were_free = len(seen.free)
        if self._somebody_is_new or is_skipped:
            self._pace.joined(self._ahead, monotonic())
            self._somebody_is_new = False
        else:
            self._pace.advanced(self._ahead, monotonic())
        self._lying.note(seen, monotonic())
        self._pace.stirred(self._lying.stirs(self._rank(seen), monotonic()))
        return seen

    def _rank(self, seen: Glance) -> int:
        """Return how many there are at most in front of us to whom nothing is given of what is free."""
        return max(0, self._ahead - len(seen.free))

    def _glance(self, selector: str, demand: int, ahead: Where = search.NOBODY) -> Glance:
        return glance(self._connection, self.model, selector, demand, ahead)

    def _serve(self, seen: Glance) -> None:
        """Claim what is ours of what is free."""
        is_left = self._lying.is_any_left(self._rank(seen), monotonic())
        places = self._places(len(seen.free), is_left=is_left)
        wanted = sum(place.count for place in places if place.selector == self.selector)
        if seen.is_cut_short and len(seen.free) < wanted:  # somebody in front wants many
            seen = self._glance(self.selector, wanted)
            self._lying.note(seen, monotonic())
        free = {self.selector: self._lying.without(seen.free, monotonic())}
        for other in {place.selector for place in places} - {self.selector}:
            demand = sum(place.count for place in places if place.selector == other)
            free[other] = self._lying.without(self._glance(other, demand).free, monotonic())
        served = allot(places, free)
        self._lying.offered(served if is_left else (), monotonic())
        passed: set[int] = set()
        for waiter in self.waiters:
            if pks := served.get(waiter.number):
                self._claim(waiter, pks)
            elif is_left:
                passed |= self._pass(waiter, places, free, served)
        self._let_go()
        self._skip(passed)

    def _pass(
        self,
        waiter: Waiter,
        places: list[Place],
        free: Mapping[str, list[Any]],
        served: Mapping[int, list[Any]],
    ) -> set[int]:
        """Claim what those in front leave lying; return those who had their time to do so."""
        mine = (waiter.request.priority, waiter.number)
        unserved = [
            place.ticket
            for place in places
            if place.order < mine and place.ticket not in served and self._is_plain(place)
        ]
        asleep = self._lying.asleep(served, len(unserved), monotonic())
        if not asleep:
            return set()
        passed = {*asleep, *unserved}
        pks = left_over(places, free, served, passed).get(waiter.number)
        return passed if pks and self._claim(waiter, pks) else set()

    def _skip(self, passed: set[int]) -> None:
        """Tell everybody not to leave anything for these. Only a hint, so it may fail."""
        sleepers = sorted(passed - {waiter.number for waiter in self.waiters})
        if sleepers:
            with contextlib.suppress(DatabaseError, InterfaceError, ResourcePoolError):
                tickets.skip(self._connection, sleepers, ticket_ttl())

    def _is_plain(self, place: Place) -> bool:
        """Tell whether it stands for one row of what we want."""
        return place.count == 1 and place.selector == self.selector

    def _places(self, rows: int, *, is_left: bool) -> list[Place]:
        """Return those who decide about so many free rows; everybody in front of us if something is left lying."""
        is_alone = len(self.waiters) == 1 and self.waiters[0].request.count == 1
        if is_alone and not self._is_mixed and not is_left:  # known already: nobody else's place matters
            plain = [Place(-index, self.selector, 1) for index in range(1, self._ahead + 1)]
            return [*plain, Place(self.waiters[0].number, self.selector, 1)]
        most = rows + (self._ahead + len(self.waiters) if is_left else 0)
        places = tickets.in_line(self._connection, self.label, most)
        # If all want the same, each takes one of the rows at least.
        if len(places) == most and not all(place.selector == self.selector for place in places):
            places = tickets.in_line(self._connection, self.label, most := tickets.LONGEST_LINE)
        return self._with_ours(places, is_complete=len(places) < most)

    def _with_ours(self, places: list[Place], *, is_complete: bool) -> list[Place]:
        """Return them with those of ours whom the others skip: we are awake, after all."""
        seen = {place.ticket for place in places}
        missing = [
            Place(waiter.number, self.selector, waiter.request.count, waiter.request.priority)
            for waiter in self.waiters
            if waiter.number not in seen
        ]
        skipped = [place for place in missing if is_complete or place.order < places[-1].order]
        if not skipped:
            return places
        tickets.unskip(self._connection, [place.ticket for place in skipped])
        return sorted([*places, *skipped], key=lambda place: place.order)

    def _claim(self, waiter: Waiter, pks: list[Any]) -> bool:
        try:
            grants = claim(self._connection, waiter.request, pks)
        except DatabaseUnavailable:
            raise
        except Exception as error:
            logger.exception("cannot serve a waiter for %s", self.label)
            waiter.fail(error)
            return False
        if grants is None:
            self._lying.could_not_be_had(pks, monotonic())
            return False
        self._pace.advanced(-1, monotonic())
        self._lying.taken(pks)
        waiter.give(grants)
        return True

    def _let_go(self) -> None:
        """Take the tickets of those who left out of the line."""
        gone = {waiter for waiter in self.waiters if waiter.has_left}
        if not gone:
            return
        held = [waiter.ticket for waiter in gone if waiter.ticket is not None]
        if held:
            tickets.remove(self._connection, [ticket.pk for ticket in held])
        for ticket in held:
            keeper.forget(ticket)  # not before: should the process end just now, what is kept is released
        self.waiters = [waiter for waiter in self.waiters if waiter not in gone]

    def _tidy(self) -> None:
        """Remove tickets whose waiters died, by primary key."""
        if not chores.is_due("tidy", self.model, self.using, TIDY_EVERY):
            return
        dead = tickets.dead_since(self._connection, self.label, TIDY_EVERY)
        if dead:
            tickets.remove(self._connection, dead)


def claim_as_last(connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
    """Claim what would be left for ``request`` if it stood at the end of the line; None when nothing is."""
    mine = Place(0, request.selector, request.count)
    places = [*tickets.in_line(connection, request.model._meta.label_lower), mine]
    free = {
        selector: list(glance(connection, request.model, selector, len(places) + request.count).free)
        for selector in {place.selector for place in places}
    }
    served = allot(places, free)
    return claim(connection, request, served[0]) if 0 in served else None


def claim(
    connection: BaseDatabaseWrapper, request: Request, pks: list[Any], *, behind_waiters: bool = False
) -> list[Grant] | None:
    """Claim exactly these rows for ``request``; None when not all of them were free any more."""
    where = request.model.where(request.selector, connection)
    wanted = request.claim.of_rows(where, behind_waiters=behind_waiters)
    if len(pks) > 1:
        return verbs.claim_all(connection, request.model, pks, wanted)
    grant = verbs.claim(connection, request.model, pks[0], wanted)
    return None if grant is None else [grant]


def glance(
    connection: BaseDatabaseWrapper, model: Model, selector: str, demand: int, ahead: Where = search.NOBODY
) -> Glance:
    """Return what is free for ``selector``, and some to spare for those in front."""
    where = model.where(selector, connection)
    return search.glance(connection, model, where, min(demand + SPARE_ROWS, MOST_ROWS), ahead)
