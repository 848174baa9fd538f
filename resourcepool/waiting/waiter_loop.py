"""The waiters of this process on one database: takes and checks their tickets, and delivers granted rows."""

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
from resourcepool.waiting import assignment, tickets
from resourcepool.waiting.estimates import FIRST_SCAN_DELAY, scan_interval, throttle
from resourcepool.waiting.handover import FIRST_TICKETS
from resourcepool.waiting.ticket_wakeups import ticket_wakeups
from resourcepool.waiting.waiter import Waiter, check_tickets, pass_on

logger = logging.getLogger(__name__)

SERVED_BATCH = 16  # tickets of served waiters that are removed together
MAX_SERVED_DELAY = 3.0  # seconds after which fewer are removed
CHECKED_TOGETHER = 0.005  # seconds: checks due within this time are made together
FIRST_IN_LINE = 4  # tickets among which a release chooses (``change_row_and_first_ticket``)
ALL_SCAN_FOR = 1.0  # seconds after its arrival for which every waiter scans, near or not
MIN_SCAN_INTERVAL = 0.01  # seconds
PRUNE_EVERY = 60.0  # seconds

# attrgetter is fast: a turn visits all waiters, maybe hundreds, many times a second.
PLACE = attrgetter("place")
NEXT_CHECK, NEXT_SCAN, RENEWED_AT = attrgetter("next_check"), attrgetter("next_scan"), attrgetter("renewed_at")


class WaiterLoop:
    """Serves the waiters of one database; used by the waiters' thread only. Other threads use ``Waiter.outcome``."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.waiters: list[Waiter] = []
        self.used: list[int] = []
        self.db_error: Exception | None = None
        self.is_off_until = 0.0
        self._used_at = 0.0

    def turn(self, noticed: Collection[int] = ()) -> float:
        """Serve waiters that were given rows, and do other work that is due; returns the time of the next turn.

        Args:
            noticed: tickets that were probably given a row.

        Raises:
            DatabaseUnavailable: the waiters are unchanged.
        """
        for waiter in self.waiters:
            if waiter.is_orphaned:
                waiter.outcome.cancel()
        self.leave([waiter for waiter in self.waiters if waiter.is_done])
        self._finish_fifo_once()
        if not self.waiters:
            return self._remove_used()
        self._take_tickets()
        now = monotonic()
        self._renew(now)
        self._check(noticed, now)
        self._scan()
        return min(self._remove_used(), self._soonest(NEXT_CHECK), self._soonest(NEXT_SCAN), self._renew_at())

    def _soonest(self, when: Callable[[Waiter], float]) -> float:
        return min(map(when, self.waiters), default=math.inf)

    def _renew_at(self) -> float:
        return self._soonest(RENEWED_AT) + ticket_ttl() / 3

    def fail(self, error: Exception) -> None:
        """Let all waiters fail; tickets that cannot be removed expire."""
        for waiter in self.waiters:
            waiter.outcome.fail(error)
        try:
            self.leave(self.waiters)
        except Exception as second:  # noqa: BLE001 (the thread must survive any error)
            logger.info("tickets were not removed; they will expire: %s", second)
        self.waiters = []

    def close(self) -> None:
        """Remove all waiters from the line, at the end of the process."""
        self.leave(self.waiters)
        self._used_at = -math.inf
        self._remove_used()

    @property
    def ticket_count(self) -> int:
        """The number of tickets in the database, of waiters and of waiters that were just served."""
        return len(self.used) + sum(
            waiter.ticket is not None or waiter.insert_in_doubt for waiter in self.waiters
        )

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    # Tickets

    def _take_tickets(self) -> None:
        """Take missing tickets, after an outage of the database or a long pause of this process."""
        for waiter in [waiter for waiter in self.waiters if waiter.ticket is None]:
            ticket = tickets.take(self._connection, waiter.model, waiter.request, waiter.holder)
            waiter.set_ticket(ticket)
            ticket_wakeups.add(self.using, ticket.pk)
            waiter.next_scan = 0.0

    def _finish_fifo_once(self) -> None:
        """Finish ``fifo_once`` waiters: served with nothing if the ticket is gone, timed out if the DELETE succeeds."""
        gone = []
        for waiter in [waiter for waiter in self.waiters if waiter.request.fifo_once]:
            if waiter.ticket is None:
                waiter.outcome.serve([])  # a row may have passed it over
                gone.append(waiter)
            elif waiter.is_late and tickets.leave(self._connection, [waiter.ticket.pk]):
                waiter.clear_ticket()
                waiter.outcome.cancel()
                gone.append(waiter)
            elif waiter.is_late:
                waiter.next_check = 0.0  # it has been given a row
        if gone:
            self.waiters = [waiter for waiter in self.waiters if waiter not in gone]

    def _renew(self, now: float) -> None:
        if self._renew_at() > now:
            return
        due = self.waiters  # one is due: renew all in one statement
        tickets.renew(self._connection, [waiter.ticket.pk for waiter in due if waiter.ticket])
        for waiter in due:
            if waiter.holds:
                verbs.renew(self._connection, waiter.model, waiter.holds, ticket_ttl())
            waiter.renewed_at = now

    def leave(self, gone: Sequence[Waiter]) -> None:
        """Remove these waiters and their tickets from the line."""
        for waiter in gone:
            if waiter.insert_in_doubt:
                waiter.ticket = tickets.find(self._connection, waiter.model, waiter.request, waiter.holder)
        pks = [waiter.ticket.pk for waiter in gone if waiter.ticket is not None]
        if pks and not tickets.leave(self._connection, pks):
            given = tickets.look(self._connection, pks)
            for waiter in gone:
                if waiter.ticket is not None and waiter.ticket.pk in given:
                    pass_on(self._connection, waiter, given[waiter.ticket.pk])
        for waiter in gone:
            waiter.clear_ticket()
        self.waiters = [waiter for waiter in self.waiters if waiter not in gone]

    def _remove_used(self) -> float:
        """Remove the tickets of served waiters, if there are enough; otherwise returns when to do so."""
        if not self.used:
            return math.inf
        if len(self.used) < SERVED_BATCH and monotonic() < self._used_at + MAX_SERVED_DELAY:
            return self._used_at + MAX_SERVED_DELAY
        tickets.remove(self._connection, self.used)
        self.used = []  # last: after an error, the next turn tries again
        return math.inf

    # Checks of tickets

    def _check(self, noticed: Collection[int], now: float) -> None:
        if not noticed and self._soonest(NEXT_CHECK) > now:
            return
        checked, batch = set[Waiter](), _to_check(self.waiters, noticed, now + CHECKED_TOGETHER)
        while batch:
            checked.update(batch)
            is_moving = False
            for waiter, grants in check_tickets(self._connection, batch):
                self.drop(waiter)
                self.waiters.remove(waiter)
                waiter.deliver(grants)
                is_moving |= waiter.model.line_per_name
            more = _to_check(self.waiters, noticed, now + CHECKED_TOGETHER) if is_moving else ()
            batch = [waiter for waiter in more if waiter not in checked]
        soonest = min((waiter.next_check for waiter in self.waiters if waiter in checked), default=math.inf)
        for waiter in self.waiters:
            if waiter.model.line_per_name and waiter not in checked:
                waiter.next_check = soonest

    def drop(self, waiter: Waiter) -> None:
        """Note that this waiter was served, so its ticket can be removed."""
        if waiter.ticket is not None:
            ticket_wakeups.discard(self.using, waiter.ticket.pk)
            self._used_at = self._used_at if self.used else monotonic()
            self.used.append(waiter.ticket.pk)
            waiter.ticket = None

    # Scans for free rows

    def _scan(self) -> None:
        now = monotonic()
        if self._soonest(NEXT_SCAN) > now:
            return
        for name in {waiter.line for waiter in self.waiters if waiter.next_scan <= now}:
            mine = [waiter for waiter in self.waiters if waiter.line == name]
            pause = self._assign(mine[0].model, mine, now)
            for waiter in mine:
                # New waiters keep their own first scan, for rows left free because of ``NoWaiterCache``.
                if waiter.next_scan <= now or waiter.began + FIRST_SCAN_DELAY < now:
                    waiter.next_scan = now + pause

    def _assign(self, model: Model, mine: list[Waiter], now: float) -> float:
        """Assign free rows, unless waiters of other processes are nearer; returns the seconds until the next scan."""
        waited = max(now - waiter.began for waiter in mine)
        soonest = scan_interval(waited)
        for selector in {waiter.request.selector for waiter in mine}:
            alike = [waiter for waiter in mine if waiter.request.selector == selector]
            demand = sum(waiter.request.count for waiter in alike)
            if demand > len(alike) and waited > ALL_SCAN_FOR:
                assignment.reclaim_from_later(self._connection, model, selector)
                self._restore_number(alike)
            if not self._is_any_near(model, selector, alike) and waited > ALL_SCAN_FOR:
                continue
            seen, _ = assignment.assign_free_rows(self._connection, model, selector, FIRST_TICKETS + demand)
            if seen.next_in is not None:
                soonest = min(soonest, max(seen.next_in, MIN_SCAN_INTERVAL))
            if not seen.free:
                throttle.return_due_rows(model, self.using)
            if not seen.free and seen.next_in is None and model.line_per_name:
                self._restore_rows(alike[0])
        self._prune_tickets(model)
        return soonest

    def _restore_number(self, alike: list[Waiter]) -> None:
        """Let sources of several rows per name check the number of rows: it may have changed meanwhile."""
        for waiter in alike:
            if waiter.model.line_per_name and waiter.request.count > 1:
                self._restore_rows(waiter)

    def _restore_rows(self, waiter: Waiter) -> None:
        """Let the source of ``waiter`` create its rows again: they may have been removed as unused."""
        try:
            waiter.source.refuse_impossible(self._connection, waiter.request)
        except BadOption as error:
            waiter.outcome.fail(error)

    def _is_any_near(self, model: Model, selector: str, alike: list[Waiter]) -> bool:
        """Find out which of these waiters are among the first with their selector."""
        first = set(tickets.first(self._connection, model, selector, FIRST_IN_LINE))
        for waiter in alike:
            waiter.is_near = waiter.ticket is not None and waiter.ticket.pk in first
        return any(waiter.is_near for waiter in alike)

    def _prune_tickets(self, model: Model) -> None:
        """Remove tickets of crashed processes."""
        is_due = throttle.is_due("prune tickets", model, self.using, PRUNE_EVERY)
        if is_due and (expired := tickets.expired_since(self._connection, model, PRUNE_EVERY)):
            tickets.remove(self._connection, expired)


def _to_check(waiters: Sequence[Waiter], noticed: Collection[int], due_until: float) -> list[Waiter]:
    """Return the waiters to check: the first of each line, and those that are due or noticed.

    Lines per name are served strictly in order: there, only the first are checked.
    """
    chosen, seen = list[Waiter](), Counter[str]()
    for waiter in sorted(waiters, key=PLACE):
        pk = waiter.ticket.pk if waiter.ticket else None
        is_due = waiter.next_check <= due_until or pk in noticed
        if pk is None or seen[waiter.line] < FIRST_IN_LINE or (is_due and not waiter.model.line_per_name):
            chosen.append(waiter)
        seen[waiter.line] += 1
    return chosen
