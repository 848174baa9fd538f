"""The waiters of this process on one database: takes their tickets, looks at them, and delivers granted rows."""

import logging
import math
from collections import Counter
from collections.abc import Sequence

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.conf import ticket_ttl
from resourcepool.database.clock import monotonic
from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs
from resourcepool.leases.table import Model
from resourcepool.waiting import giving_out, tickets
from resourcepool.waiting.contention import SOON, slow_pause, upkeep
from resourcepool.waiting.handover import FEW
from resourcepool.waiting.notices import notices
from resourcepool.waiting.waiter import Waiter, look, pass_on

logger = logging.getLogger(__name__)

USED = 16  # tickets of served waiters are removed together, once there are so many
USED_AT_MOST = 3.0  # or after this many seconds
FIRST_FEW = 4  # in line: as many as a release chooses among (``change_both_by_first``)
CLOSELY = 1.0  # seconds for which every waiter looks at free rows, near or not
SOONEST = 0.01  # seconds between two looks at free rows
TIDY_EVERY = 60.0  # seconds


class Line:
    """Used by the waiters' thread only; ``Waiter.outcome`` is what other threads see."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.waiters: list[Waiter] = []
        self.used: list[int] = []
        self.trouble: Exception | None = None
        self.is_off_until = 0.0
        self._used_at = 0.0

    def turn(self, *, noticed: bool) -> float:
        """Serve waiters that were given rows, and do what else is due; returns when to look again.

        Raises:
            DatabaseUnavailable: nothing was decided; the waiters are unchanged.
        """
        self.leave([waiter for waiter in self.waiters if waiter.has_left])
        self._dismiss()
        if not self.waiters:
            return self._remove_used()
        self._take_tickets()
        now = monotonic()
        self._renew(now)
        if noticed or any(waiter.look_at <= now for waiter in self.waiters):
            self._look()
        self._look_at_free_rows()
        renew_every = ticket_ttl() / 3
        times = [min(one.look_at, one.free_at, one.renewed_at + renew_every) for one in self.waiters]
        return min([self._remove_used(), *times])

    def fail(self, error: Exception) -> None:
        """Tell every waiter that it cannot be served; tickets that cannot be removed expire."""
        for waiter in self.waiters:
            waiter.outcome.fail(error)
        try:
            self.leave(self.waiters)
        except Exception as second:  # noqa: BLE001 (whatever it is: this thread must not die of it)
            logger.info("tickets are not removed, they lapse: %s", second)
        self.waiters = []

    def close(self) -> None:
        """Take all waiters out of the line, at the end of the process."""
        self.leave(self.waiters)
        self._used_at = -math.inf
        self._remove_used()

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    # Tickets

    def _take_tickets(self) -> None:
        """Take missing tickets: the database did not answer, or this process stood still for too long."""
        for waiter in [one for one in self.waiters if one.ticket is None]:
            ticket = tickets.take(self._connection, waiter.model, waiter.request, waiter.holder)
            waiter.has(ticket)
            notices.add(self.using, ticket.pk)
            waiter.free_at = 0.0

    def _dismiss(self) -> None:
        """Let those go who stand in line once: who has lost the place, or is too late, which one DELETE decides."""
        gone = []
        for waiter in [one for one in self.waiters if one.request.stands_first]:
            if waiter.ticket is None:
                waiter.outcome.serve([])  # what it waits for may have passed it over
                gone.append(waiter)
            elif waiter.is_late and tickets.leave(self._connection, [waiter.ticket.pk]):
                waiter.lost_ticket()
                waiter.outcome.give_up()
                gone.append(waiter)
            elif waiter.is_late:
                waiter.look_at = 0.0  # it has been given something
        if gone:
            self.waiters = [waiter for waiter in self.waiters if waiter not in gone]

    def _renew(self, now: float) -> None:
        if all(waiter.renewed_at + ticket_ttl() / 3 > now for waiter in self.waiters):
            return
        due = self.waiters  # all of them when one is due, in one statement
        tickets.renew(self._connection, [waiter.ticket.pk for waiter in due if waiter.ticket])
        for waiter in due:
            if waiter.holds:
                verbs.renew(self._connection, waiter.model, waiter.holds, ticket_ttl())
            waiter.renewed_at = now

    def leave(self, gone: Sequence[Waiter]) -> None:
        """Take these, and their tickets, out of the line."""
        for waiter in gone:
            if waiter.is_taking:
                waiter.ticket = tickets.find(self._connection, waiter.model, waiter.request, waiter.holder)
        pks = [waiter.ticket.pk for waiter in gone if waiter.ticket is not None]
        if pks and not tickets.leave(self._connection, pks):
            given = tickets.look(self._connection, pks)
            for waiter in gone:
                if waiter.ticket is not None and waiter.ticket.pk in given:
                    pass_on(self._connection, waiter, given[waiter.ticket.pk])
        for waiter in gone:
            waiter.lost_ticket()
        self.waiters = [waiter for waiter in self.waiters if waiter not in gone]

    def _remove_used(self) -> float:
        """Remove the tickets of served waiters, if there are enough of them; returns when to do so."""
        if not self.used:
            return math.inf
        if len(self.used) < USED and monotonic() < self._used_at + USED_AT_MOST:
            return self._used_at + USED_AT_MOST
        tickets.remove(self._connection, self.used)
        self.used = []  # only now: tickets that cannot be removed now are removed later
        return math.inf

    # Looking

    def _look(self) -> None:
        first, others, is_moving = list[Waiter](), list[Waiter](), True
        while is_moving:
            first, others = _near_the_front(self.waiters)
            is_moving = False
            for waiter, grants in look(self._connection, first):
                self.drop(waiter)
                self.waiters.remove(waiter)
                waiter.give(grants)
                is_moving = bool(others)
        soonest = min((waiter.look_at for waiter in first), default=math.inf)
        for waiter in others:
            waiter.look_at = soonest

    def drop(self, waiter: Waiter) -> None:
        """Note that this waiter has been served and does not need its ticket any more."""
        if waiter.ticket is not None:
            notices.discard(self.using, waiter.ticket.pk)
            self._used_at = self._used_at if self.used else monotonic()
            self.used.append(waiter.ticket.pk)
            waiter.ticket = None

    # What comes free by itself

    def _look_at_free_rows(self) -> None:
        now = monotonic()
        for name in {waiter.line for waiter in self.waiters if waiter.free_at <= now}:
            mine = [waiter for waiter in self.waiters if waiter.line == name]
            pause = self._give_out(mine[0].model, mine, now)
            for waiter in mine:
                # Rows may be released unasked until one that has just come looks at them.
                if waiter.free_at <= now or waiter.began + SOON < now:
                    waiter.free_at = now + pause

    def _give_out(self, model: Model, mine: list[Waiter], now: float) -> float:
        """Give out free rows, unless other waiters are nearer to them; returns in how many seconds to look again."""
        waited = max(now - waiter.began for waiter in mine)
        soonest = slow_pause(waited)
        for selector in {waiter.request.selector for waiter in mine}:
            alike = [waiter for waiter in mine if waiter.request.selector == selector]
            demand = sum(waiter.request.count for waiter in alike)
            if demand > len(alike) and waited > CLOSELY:
                giving_out.take_back(self._connection, model, selector)
                self._see_to_number(alike)
            if not self._is_any_near(model, selector, alike) and waited > CLOSELY:
                continue
            seen, _ = giving_out.give_out(self._connection, model, selector, FEW + demand)
            if seen.next_in is not None:
                soonest = min(soonest, max(seen.next_in, SOONEST))
            if not seen.free:
                upkeep.revive(model, self.using)
            if not seen.free and seen.next_in is None and model.line_per_name:
                self._see_to_rows(alike[0])
        self._tidy(model)
        return soonest

    def _see_to_number(self, alike: list[Waiter]) -> None:
        """Let sources of several rows of a name see that there are so many: others may have been made meanwhile."""
        for waiter in alike:
            if waiter.model.line_per_name and waiter.request.count > 1:
                self._see_to_rows(waiter)

    def _see_to_rows(self, waiter: Waiter) -> None:
        """Let the source of ``waiter`` add its rows again: there are none, they were unused and have been removed."""
        try:
            waiter.source.refuse_impossible(self._connection, waiter.request)
        except BadOption as error:
            waiter.outcome.fail(error)

    def _is_any_near(self, model: Model, selector: str, alike: list[Waiter]) -> bool:
        """Find out which of these waiters are among the first with the same selector."""
        first = set(tickets.first(self._connection, model, selector, FIRST_FEW))
        for waiter in alike:
            waiter.is_near = waiter.ticket is not None and waiter.ticket.pk in first
        return any(waiter.is_near for waiter in alike)

    def _tidy(self, model: Model) -> None:
        """Remove tickets whose waiters died."""
        is_due = upkeep.is_due("tidy", model, self.using, TIDY_EVERY)
        if is_due and (dead := tickets.dead_since(self._connection, model, TIDY_EVERY)):
            tickets.remove(self._connection, dead)


def _near_the_front(waiters: Sequence[Waiter]) -> tuple[list[Waiter], list[Waiter]]:
    """Return the waiters whose tickets to look at, and those that are not served before one of them is.

    For one name all are served in their order; a pool's selectors let one overtake another.
    """
    first, others, seen = list[Waiter](), list[Waiter](), Counter[str]()
    for waiter in sorted(waiters, key=_place):
        is_first = not waiter.model.line_per_name or waiter.ticket is None or seen[waiter.line] < FIRST_FEW
        seen[waiter.line] += 1
        (first if is_first else others).append(waiter)
    return first, others


def _place(waiter: Waiter) -> tuple[int, int]:
    return waiter.request.priority, waiter.ticket.pk if waiter.ticket else 0
