"""A turn: everything that a process does for its waiters, with as few statements for a hundred as for one.

It looks at their tickets, renews these, assigns free rows, and takes new tickets for those that expired. ``poll``
decides which thread takes the turn, and ``pacing`` when.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from operator import attrgetter

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import hints
from resourcepool.clock import monotonic
from resourcepool.conf import ticket_ttl
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.models import Model
from resourcepool.leases.terms import Grant, margin
from resourcepool.waiting import tickets
from resourcepool.waiting.pacing import FIRST_IN_LINE, TOGETHER
from resourcepool.waiting.release import release
from resourcepool.waiting.scan import scan
from resourcepool.waiting.tickets import NewTicket, TicketState
from resourcepool.waiting.waiter import Waiter

USED_BATCH = 16  # tickets of served waiters that are removed together
PRUNE_EVERY = 60.0  # seconds

# attrgetter is fast: a turn visits all waiters, maybe hundreds, many times a second.
PLACE, DUE = attrgetter("place"), attrgetter("due")
NEXT_LOOK, NEXT_SCAN, RENEW_AT = map(attrgetter, ("next_look", "next_scan", "renew_at"))


class Turns:
    """The waiters of this process on one database, and what a turn does for them. One thread at a time takes turns.

    Attributes:
        waiters: all of them. Other threads add and remove some at any moment, so iterate over a copy.
        used: tickets of served waiters, which are removed together.
    """

    def __init__(self, using: str, wake: Callable[[], None]) -> None:
        """``wake``: wakes the thread that takes turns."""
        self.using = using
        self.waiters: dict[Waiter, None] = {}
        self.used: dict[int, None] = {}
        self._wake = wake
        self._noticed: dict[int, object] = {}
        self._pruned_at: dict[Model, float] = {}

    def expect(self, waiter: Waiter) -> None:
        """Look at the ticket of this waiter when notified that it was given a row."""
        if (ticket := waiter.ticket) is not None:
            hints.expect(self.using, ticket.pk, partial(self._notice, ticket.pk))

    def _notice(self, ticket: int) -> None:
        self._noticed[ticket] = object()  # a new one each time: a turn keeps a notice that arrives meanwhile
        self._wake()

    @property
    def due(self) -> float:
        """When to take the next turn."""
        return 0.0 if self._noticed else soonest(self.waiters, DUE)

    def take(self) -> None:
        """Serve waiters that were given rows, and do other work that is due; raises DatabaseUnavailable."""
        noticed, waiters = dict(self._noticed), self._not_done()
        for waiter in waiters:
            if waiter.request.fifo_once:
                self._finish_fifo_once(waiter)
            elif waiter.ticket is None:
                self._take_ticket(waiter)
        now = monotonic()
        if soonest(waiters, RENEW_AT) <= now:
            self._renew(waiters, now)
        if noticed or soonest(waiters, NEXT_LOOK) <= now:
            self._look(noticed, now)
        for ticket, notice in noticed.items():  # only now: after an interruption, the next thread looks at them
            if self._noticed.get(ticket) is notice:
                self._noticed.pop(ticket, None)
        if soonest(self.waiters, NEXT_SCAN) <= (now := monotonic()):
            self._scan(now)

    def _not_done(self) -> list[Waiter]:
        """Remove the waiters that are done, and return the others; those that gave up leave the line."""
        waiting, done = list[Waiter](), list[Waiter]()
        for waiter in list(self.waiters):
            if waiter.is_orphaned:
                waiter.outcome.cancel()
            (done if waiter.is_done else waiting).append(waiter)
        if done:
            if gone := [waiter for waiter in done if not waiter.outcome.leases]:
                self.remove(gone)
            for waiter in done:
                self.use(waiter)
        return waiting

    def use(self, waiter: Waiter) -> None:
        """Note that this waiter was served; its ticket is removed later, together with others."""
        self.waiters.pop(waiter, None)
        if (ticket := waiter.ticket) is not None:
            hints.forget(self.using, ticket.pk)
            self.used[ticket.pk] = None
            waiter.ticket = None
        if len(self.used) >= USED_BATCH:
            self.remove_used()

    def remove_used(self) -> None:
        """Remove the tickets of served waiters; those of an unavailable database expire."""
        for ticket in (used := list(self.used)):
            self.used.pop(ticket, None)
        if used:
            tickets.remove(self._connection, used)

    def remove(self, gone: Sequence[Waiter]) -> None:
        """Remove these waiters and their tickets from the line; their rows go to the next in line."""
        for waiter in gone:
            if waiter.insert_in_doubt:
                waiter.ticket = tickets.find(self._connection, waiter.model, waiter.request, waiter.holder)
        pks = [ticket.pk for waiter in gone if (ticket := waiter.ticket)]
        if pks and not tickets.leave(self._connection, pks):
            given = tickets.look(self._connection, pks)
            for waiter in gone:
                if (ticket := waiter.ticket) and ticket.pk in given:
                    pass_on(self._connection, waiter, given[ticket.pk])
        for waiter in gone:
            waiter.clear_ticket()
            self.waiters.pop(waiter, None)

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    def _take_ticket(self, waiter: Waiter) -> None:
        """Take another ticket, after an outage of the database or a long pause of this process."""
        if waiter.is_done:
            return
        waiter.insert_in_doubt = True
        try:
            ticket = tickets.take(self._connection, waiter.model, waiter.request, waiter.holder)
        except DatabaseUnavailable:
            waiter.insert_in_doubt = False
            raise
        waiter.set_ticket(ticket)
        waiter.next_scan = 0.0
        self.expect(waiter)
        if waiter.is_done:  # it gave up during the INSERT: the next turn removes its ticket
            self.waiters[waiter] = None

    def _finish_fifo_once(self, waiter: Waiter) -> None:
        """Finish a ``fifo_once`` waiter: served with nothing if its ticket is gone; timed out if it is late."""
        if (ticket := waiter.ticket) is None:
            waiter.outcome.serve([])  # its ticket expired, so a row may have passed it over
            self.waiters.pop(waiter, None)
        elif waiter.is_late and tickets.leave(self._connection, [ticket.pk]):
            waiter.clear_ticket()
            waiter.outcome.cancel()
            self.waiters.pop(waiter, None)
        elif waiter.is_late:
            waiter.next_look = 0.0  # it has been given a row

    def _renew(self, waiters: Sequence[Waiter], now: float) -> None:
        """Renew all tickets in one statement; if all still wait, that counts as a look."""
        pks = [ticket.pk for waiter in waiters if (ticket := waiter.ticket)]
        all_wait = tickets.renew(self._connection, pks) == len(waiters)
        for waiter in waiters:
            if waiter.holds:
                verbs.renew(self._connection, waiter.model, waiter.holds, ticket_ttl())
            waiter.renew_at = now + ticket_ttl() / 3
            if all_wait and waiter.request.count == 1:
                waiter.set_next_look(now)

    # Looks at tickets

    def _look(self, noticed: Collection[int], now: float) -> None:
        waiters = list(self.waiters)
        if len(waiters) == 1:  # the usual case, in few calls
            if waiters[0].ticket is not None:
                self._serve(waiters, noticed)
            return
        until = due_until(waiters, now)
        looked, batch = set[Waiter](), to_look_at(waiters, noticed, until)
        while batch:
            looked.update(batch)
            is_moving = any(waiter.model.line_per_name for waiter in self._serve(batch, noticed))
            more = to_look_at(list(self.waiters), noticed, until) if is_moving else ()
            batch = [waiter for waiter in more if waiter not in looked]
        self._postpone_others_of_lines(looked)

    def _serve(self, waiters: Sequence[Waiter], noticed: Collection[int]) -> list[Waiter]:
        """Look at the tickets, and return the waiters that were given their rows."""
        served = []
        for waiter, grants in look(self._connection, waiters, noticed):
            waiter.deliver(grants)
            self.use(waiter)
            served.append(waiter)
        return served

    def _postpone_others_of_lines(self, looked: Collection[Waiter]) -> None:
        """In lines per name, which are served strictly in order, the others look when the first do."""
        others = [
            waiter for waiter in list(self.waiters) if waiter.model.line_per_name and waiter not in looked
        ]
        next_looks = dict[str, float]()
        for waiter in looked if others else ():
            if waiter in self.waiters:
                next_looks[waiter.line] = min(waiter.next_look, next_looks.get(waiter.line, math.inf))
        for waiter in others:
            waiter.next_look = next_looks.get(waiter.line, waiter.next_look)

    def _scan(self, now: float) -> None:
        waiters = list(self.waiters)
        scan(self._connection, waiters, now)
        self._prune({waiter.model for waiter in waiters}, now)

    def _prune(self, models: Collection[Model], now: float) -> None:
        """Remove tickets of crashed processes."""
        for model in models:
            if now > self._pruned_at.get(model, -math.inf) + PRUNE_EVERY:
                self._pruned_at[model] = now
                if expired := tickets.expired_for(self._connection, model, PRUNE_EVERY):
                    tickets.remove(self._connection, expired)


def look(
    connection: BaseDatabaseWrapper, waiters: Sequence[Waiter], noticed: Collection[int]
) -> Iterator[tuple[Waiter, list[Grant]]]:
    """Look at the tickets; yield waiters that were given their rows, and schedule the next look of the others.

    A waiter whose ticket expired, because its process was paused for too long, has no ticket afterwards.

    Raises:
        DatabaseUnavailable: waiters that were not yielded are unchanged.
    """
    sent_at = monotonic()
    states = tickets.look(connection, [ticket.pk for waiter in waiters if (ticket := waiter.ticket)])
    for waiter in waiters:
        ticket = waiter.ticket
        seen = states.get(ticket.pk) if ticket else None
        if ticket is None or seen is None or (seen.is_waiting and seen.left <= 0):
            waiter.clear_ticket()
        elif seen.is_waiting:
            waiter.holds, waiter.db_error = waiter.rows_of(seen), None
            waiter.set_next_look(sent_at)
        elif grants := _grants(connection, waiter, ticket, seen, sent_at, was_woken=ticket.pk in noticed):
            yield waiter, grants
        else:
            pass_on(connection, waiter, seen)


def pass_on(connection: BaseDatabaseWrapper, waiter: Waiter, seen: TicketState) -> None:
    """Give the rows of this ticket to the next in line, and remove the ticket."""
    if (ticket := waiter.ticket) is not None:
        pk = ticket.pk
        while not tickets.leave(connection, [pk], seen.fence) and (now := tickets.look(connection, [pk])):
            seen = now[pk]  # it was given another row meanwhile
    for pk, fence in waiter.rows_of(seen):
        release(connection, waiter.model, pk, fence, trusted_until=0.0)
    waiter.clear_ticket()


def _grants(
    connection: BaseDatabaseWrapper,
    waiter: Waiter,
    ticket: NewTicket,
    seen: TicketState,
    sent_at: float,
    *,
    was_woken: bool,
) -> list[Grant] | None:
    """Return the grants, or None if they may have expired before this look.

    Trust begins when the look was sent, and lasts for the time left by the database's clock: this process cannot know
    when the rows were given. That may be before the previous look, if the commit came later.
    """
    rows, now = waiter.rows_of(seen), monotonic()
    if len(rows) == 1:
        if now >= sent_at + seen.left - margin(seen.left):
            return None
        given_at = sent_at + seen.left - ticket.grant_seconds
        waiter.pacing.given(ticket.pk, given_at)
        waiter.pacing.served(given_at - waiter.began, now, was_woken=was_woken)
        return [Grant(pk, fence, waiter.holder, sent_at, seen.left) for pk, fence in rows]
    # The rows were given at different times: one renewal confirms all of them.
    if verbs.renew(connection, waiter.model, rows, waiter.request.terms.ttl) < len(rows):
        return None
    return [Grant(pk, fence, waiter.holder, now) for pk, fence in rows]


def to_look_at(waiters: Sequence[Waiter], noticed: Collection[int], until: float) -> Sequence[Waiter]:
    """Return the waiters to look at: the first of each line, and those that are due or noticed.

    Lines per name are served strictly in order: there, only the first are looked at.
    """
    chosen, seen = list[Waiter](), Counter[str]()
    for waiter in sorted(waiters, key=PLACE):
        if (ticket := waiter.ticket) is None:
            continue  # it has just joined
        is_due = waiter.next_look <= until or ticket.pk in noticed
        if seen[waiter.line] < FIRST_IN_LINE or (is_due and not waiter.model.line_per_name):
            chosen.append(waiter)
        seen[waiter.line] += 1
    return chosen


def due_until(waiters: Sequence[Waiter], now: float) -> float:
    """Return until when looks are due together with those that are due at ``now``: for half a pause of these.

    One statement looks at many tickets, so the waiters of a process soon look together.
    """
    due = (waiter.pause(now) for waiter in waiters if waiter.ticket and waiter.next_look <= now + TOGETHER)
    return now + max(TOGETHER, min(due, default=0.0) / 2)


def soonest(waiters: Collection[Waiter], when: Callable[[Waiter], float]) -> float:
    """Return the earliest of these moments; infinity without waiters."""
    return min(map(when, list(waiters)), default=math.inf)
