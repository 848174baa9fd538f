"""The waiters of this process on one database: takes their tickets, looks at them, and delivers granted rows."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter

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
TOGETHER = 0.005  # seconds: looks that are due so soon are made together
FIRST_FEW = 4  # in line: as many as a release chooses among (``change_both_by_first``)
CLOSELY = 1.0  # seconds for which every waiter looks at free rows, near or not
SOONEST = 0.01  # seconds between two looks at free rows
TIDY_EVERY = 60.0  # seconds

# A turn goes over all waiters; there may be hundreds, and many turns a second.
PLACE = attrgetter("place")
LOOK_AT, FREE_AT, RENEWED_AT = attrgetter("look_at"), attrgetter("free_at"), attrgetter("renewed_at")


class Line:
    """Used by the waiters' thread only; ``Waiter.outcome`` is what other threads see."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.waiters: list[Waiter] = []
        self.used: list[int] = []
        self.trouble: Exception | None = None
        self.is_off_until = 0.0
        self._used_at = 0.0

    def turn(self, noticed: Collection[int] = ()) -> float:
        """Serve waiters that were given rows, and do what else is due; returns when to look again.

        Args:
            noticed: tickets that were probably given something.

        Raises:
            DatabaseUnavailable: nothing was decided; the waiters are unchanged.
        """
        for waiter in self.waiters:
            if waiter.is_orphaned:
                waiter.outcome.give_up()
        self.leave([waiter for waiter in self.waiters if waiter.has_left])
        self._dismiss()
        if not self.waiters:
            return self._remove_used()
        self._take_tickets()
        now = monotonic()
        self._renew(now)
        self._look(noticed, now)
        self._look_at_free_rows()
        return min(self._remove_used(), self._soonest(LOOK_AT), self._soonest(FREE_AT), self._renew_at())

    def _soonest(self, when: Callable[[Waiter], float]) -> float:
        return min(map(when, self.waiters), default=math.inf)

    def _renew_at(self) -> float:
        return self._soonest(RENEWED_AT) + ticket_ttl() / 3

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
    def ticket_count(self) -> int:
        """How many tickets are in the database: of those who wait, and of those who were served just now."""
        return len(self.used) + sum(waiter.ticket is not None or waiter.is_taking for waiter in self.waiters)

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
        if self._renew_at() > now:
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

    def _look(self, noticed: Collection[int], now: float) -> None:
        if not noticed and self._soonest(LOOK_AT) > now:
            return
        looked, those = set[Waiter](), _to_look_at(self.waiters, noticed, now + TOGETHER)
        while those:
            looked.update(those)
            is_moving = False
            for waiter, grants in look(self._connection, those):
                self.drop(waiter)
                self.waiters.remove(waiter)
                waiter.give(grants)
                is_moving |= waiter.model.line_per_name
            again = _to_look_at(self.waiters, noticed, now + TOGETHER) if is_moving else ()
            those = [waiter for waiter in again if waiter not in looked]
        soonest = min((waiter.look_at for waiter in self.waiters if waiter in looked), default=math.inf)
        for waiter in self.waiters:
            if waiter.model.line_per_name and waiter not in looked:
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
        if self._soonest(FREE_AT) > now:
            return
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


def _to_look_at(waiters: Sequence[Waiter], noticed: Collection[int], due_until: float) -> list[Waiter]:
    """Return the waiters whose tickets to look at: the first of each line, and those that are due or noticed.

    For one name all are served in their order: nobody else is looked for before one of the first is served.
    """
    chosen, seen = list[Waiter](), Counter[str]()
    for waiter in sorted(waiters, key=PLACE):
        pk = waiter.ticket.pk if waiter.ticket else None
        is_due = waiter.look_at <= due_until or pk in noticed
        if pk is None or seen[waiter.line] < FIRST_FEW or (is_due and not waiter.model.line_per_name):
            chosen.append(waiter)
        seen[waiter.line] += 1
    return chosen
