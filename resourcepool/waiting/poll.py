"""Polls for the waiters of this process: one of the waiting threads looks for all of them.

Leader and followers (Schmidt and others, 2000): the thread that waits longest looks, on its own connection; when it is
served or gives up, the next one takes over. So a single waiter, the usual case, wakes no other thread, and a hundred
cost as many statements as one. Tasks have no thread: a background thread looks for them, unless a waiting thread does.
"""

import logging
import math
import os
from collections.abc import Callable, Collection, Sequence
from functools import partial

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import hints
from resourcepool.clock import monotonic
from resourcepool.conf import ticket_ttl
from resourcepool.db import dialect
from resourcepool.db.background import log_errors, own_connections
from resourcepool.db.loop import PAUSE_AFTER_FAILURE, Loop
from resourcepool.db.threads.sync_async import never
from resourcepool.db.threads.wakeup import Wakeup
from resourcepool.db.timeouts import STATEMENT_TIMEOUT, statement_timeout
from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.leases import shutdown, verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.table import Model
from resourcepool.waiting import tickets
from resourcepool.waiting.lease import limited
from resourcepool.waiting.look import (
    DUE,
    NEXT_LOOK,
    NEXT_SCAN,
    RENEW_AT,
    due_until,
    look,
    pass_on,
    soonest,
    to_look_at,
)
from resourcepool.waiting.scan import scan
from resourcepool.waiting.waiter import Waiter

POLL = 0.5  # seconds: Python may miss a signal that arrives just as the main thread begins to wait
SESSION_KEPT = 1.0  # seconds of waiting after which a thread that does not look closes its session
USED_BATCH = 16  # tickets of served waiters that are removed together
PRUNE_EVERY = 60.0  # seconds
IDLE = 1.0  # seconds without a waiting task, after which the background thread closes its session

logger = logging.getLogger(__name__)


class Poller:
    """The waiters of this process on one database. Lock-free, like ``Keeper``: one thread at a time takes turns.

    Attributes:
        waiters: all of them; only the thread that takes turns removes one.
        used: tickets of served waiters, which are removed together.
        db_error: the error of the last turn, if the database is unavailable.
    """

    def __init__(self, using: str) -> None:
        self.using = using
        self.waiters: dict[Waiter, None] = {}
        self.used: dict[int, None] = {}
        self.db_error: Exception | None = None
        self._noticed: dict[int, object] = {}
        # Who may take turns, in order, and how to wake it.
        self._threads: dict[object, Callable[[], None]] = {}
        turn, name = self._turn_for_tasks, f"waiters-{using}"
        self._loop = Loop(name, Wakeup(), turn, self._has_tasks, idle_timeout=IDLE)
        self._sleeps_until = self._off_until = 0.0
        self._pruned_at: dict[Model, float] = {}

    # Called by waiting threads and tasks

    def wait(self, waiter: Waiter, stop: Callable[[], bool], *, keeps_session: bool) -> None:
        """Wait in this thread until ``waiter`` is served, ``stop()`` is true, or its time is up.

        Args:
            keeps_session: its session was open before, so it stays open.
        """
        began = monotonic()
        try:
            self.join(waiter, waiter.outcome.wake)
            with limited(waiter.request):
                while not waiter.is_over(stop):
                    due, now = self._due() if self._leads(waiter) else math.inf, monotonic()
                    if due <= now:
                        self.take_turn()
                        continue
                    if not keeps_session and math.isinf(due) and now > began + SESSION_KEPT:
                        dialect.close_own_session(connections[self.using])
                    # Wakes up periodically: a signal, or the end of the thread that took turns, may be missed.
                    waiter.outcome.wait(min(POLL, waiter.seconds_left, due - now))
        finally:
            self._resign(waiter)

    def decide(self, waiter: Waiter) -> None:
        """Wait until the database has decided whether the late ``waiter`` was served in time."""
        waiter.is_late = True
        if waiter.loop is None:
            self.wait(waiter, never, keeps_session=True)
        while not waiter.is_done:
            waiter.next_look = 0.0
            self.wake()
            waiter.outcome.wait(POLL)

    def join(self, waiter: Waiter, wake: Callable[[], None] | None = None) -> None:
        """Serve ``waiter``, whose ``outcome`` is set then; ``wake``: wakes its thread, which may take turns."""
        _leave_at_exit()
        self.expect(waiter)
        self.waiters[waiter] = None
        if wake is not None:
            self._threads[waiter] = wake
        else:
            self.start()
            self._threads.setdefault(self, self._loop.wakeup.wake)
            self._loop.wakeup.wake()  # always: it may just be leaving ``_threads``
        if min(waiter.next_look, waiter.next_scan) < self._sleeps_until:
            self.wake()

    def start(self) -> None:
        """Start the background thread for tasks; raises RuntimeError if no more threads can be started."""
        _leave_at_exit()
        self._loop.start()

    def expect(self, waiter: Waiter) -> None:
        """Look at the ticket of this waiter when notified that it was given a row."""
        if (ticket := waiter.ticket) is not None:
            hints.expect(self.using, ticket.pk, partial(self._notice, ticket.pk))

    def wake(self) -> None:
        """Wake the thread that takes turns."""
        for wake in list(self._threads.values())[:1]:
            wake()

    def leave(self, waiter: Waiter) -> None:
        """Remove the ticket of a cancelled waiter; its rows go to the next in line."""
        self._resign(waiter)
        if waiter.loop is not None and self._loop.is_alive:
            self.waiters[waiter] = None
            self._loop.wakeup.wake()  # the waiter may not have joined yet
            self.wake()
            return
        with log_errors("the ticket of %s was not removed; it will expire", waiter.holder), statement_timeout():
            try:
                self.remove([waiter])
            except DatabaseUnavailable as error:
                logger.info("the ticket of %s was not removed; it will expire: %s", waiter.holder, error)

    def _notice(self, ticket: int) -> None:
        self._noticed[ticket] = object()
        self.wake()

    def _leads(self, one: object) -> bool:
        for first in list(self._threads):
            if isinstance(first, Waiter) and first.is_done:
                self._threads.pop(first, None)  # perhaps its thread was interrupted while it resigned
            else:
                return first is one
        return False

    def _resign(self, waiter: Waiter) -> None:
        self._threads.pop(waiter, None)
        if not waiter.is_done:
            self.waiters.pop(waiter, None)
        self.wake()

    # The background thread, for tasks

    def _has_tasks(self) -> bool:
        return any(waiter.loop is not None for waiter in list(self.waiters))

    def _turn_for_tasks(self) -> float:
        if not self._has_tasks():
            self._threads.pop(self, None)
            self.wake()
            return math.inf
        self._threads.setdefault(self, self._loop.wakeup.wake)
        if not self._leads(self):
            return math.inf
        try:
            if self._due() <= monotonic():
                self.take_turn()
        except Exception as error:
            logger.exception("cannot serve the waiters on database %r", self.using)
            for waiter in list(self.waiters):
                waiter.outcome.fail(error)
        return self._due()

    # A turn

    def _due(self) -> float:
        """Return the time of the next turn."""
        self._sleeps_until = math.inf  # who joins from now on wakes this thread
        due = 0.0 if self._noticed else soonest(self.waiters, DUE)
        self._sleeps_until = due = max(self._off_until, due)
        return due

    def take_turn(self) -> None:
        """Serve waiters that were given rows, and do other work that is due."""
        try:
            self._turn()
            self.db_error = None
        except DatabaseUnavailable as error:
            if self.db_error is None:
                logger.warning("%s; %d waiters keep waiting", error, len(self.waiters))
            self.db_error, self._off_until = error, monotonic() + PAUSE_AFTER_FAILURE
            for waiter in list(self.waiters):
                waiter.db_error = error
                # Until the next turn has failed, too, callers take their place in line without a statement.
                waiter.pacing.waits_until = self._off_until + STATEMENT_TIMEOUT

    def _turn(self) -> None:
        noticed = dict(self._noticed)
        self._drop_done()
        self._finish_fifo_once()
        waiters = list(self.waiters)
        for waiter in [waiter for waiter in waiters if waiter.ticket is None]:
            self._take_ticket(waiter)
        now = monotonic()
        self._renew(waiters, now)
        self._look(noticed, now)
        for ticket, notice in noticed.items():  # only now: after an interruption, the next thread looks at them
            if self._noticed.get(ticket) is notice:
                self._noticed.pop(ticket, None)
        self._scan_when_due()

    def _drop_done(self) -> None:
        """Remove the waiters that are done; those that gave up leave the line."""
        for waiter in list(self.waiters):
            if waiter.is_orphaned:
                waiter.outcome.cancel()
        done = [waiter for waiter in list(self.waiters) if waiter.is_done]
        if gone := [waiter for waiter in done if not waiter.outcome.leases]:
            self.remove(gone)
        for waiter in done:
            self.use(waiter)

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
        if waiter.is_done or waiter.request.fifo_once:
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

    def _finish_fifo_once(self) -> None:
        """Finish ``fifo_once`` waiters: served with nothing if the ticket is gone, timed out if the DELETE succeeds."""
        for waiter in [waiter for waiter in list(self.waiters) if waiter.request.fifo_once]:
            if waiter.ticket is None:
                waiter.outcome.serve([])  # a row may have passed it over
                self.waiters.pop(waiter, None)
            elif waiter.is_late and tickets.leave(self._connection, [waiter.ticket.pk]):
                waiter.clear_ticket()
                waiter.outcome.cancel()
                self.waiters.pop(waiter, None)
            elif waiter.is_late:
                waiter.next_look = 0.0  # it has been given a row

    def _renew(self, waiters: Sequence[Waiter], now: float) -> None:
        """Renew all tickets in one statement if one is due; who still waits then need not be looked at."""
        if soonest(waiters, RENEW_AT) > now:
            return
        pks = [ticket.pk for waiter in waiters if (ticket := waiter.ticket)]
        all_wait = tickets.renew(self._connection, pks) == len(waiters)
        for waiter in waiters:
            if waiter.holds:
                verbs.renew(self._connection, waiter.model, waiter.holds, ticket_ttl())
            waiter.renew_at = now + ticket_ttl() / 3
            if all_wait and not waiter.request.count > 1:
                waiter.set_next_look(now)

    # Looks at tickets

    def _look(self, noticed: Collection[int], now: float) -> None:
        if not noticed and soonest(self.waiters, NEXT_LOOK) > now:
            return
        until = due_until(waiters := list(self.waiters), now)
        looked, batch = set[Waiter](), to_look_at(waiters, noticed, until)
        while batch:
            looked.update(batch)
            is_moving = False
            for waiter, grants in look(self._connection, batch, noticed):
                waiter.deliver(grants)
                self.use(waiter)
                is_moving |= waiter.model.line_per_name
            more = to_look_at(list(self.waiters), noticed, until) if is_moving else ()
            batch = [waiter for waiter in more if waiter not in looked]
        self._postpone_others_of_lines(looked)

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

    def _scan_when_due(self) -> None:
        now, waiters = monotonic(), list(self.waiters)
        if soonest(waiters, NEXT_SCAN) <= now:
            scan(self._connection, waiters, now)
            self._prune({waiter.model for waiter in waiters}, now)

    def _prune(self, models: Collection[Model], now: float) -> None:
        """Remove tickets of crashed processes."""
        for model in models:
            if now > self._pruned_at.get(model, -math.inf) + PRUNE_EVERY:
                self._pruned_at[model] = now
                if expired := tickets.expired_since(self._connection, model, PRUNE_EVERY):
                    tickets.remove(self._connection, expired)


# The pollers of this process

_pollers: dict[str, Poller] = {}
_at_exit: dict[str, None] = {}


def poller_on(using: str) -> Poller:
    """Return the poller for this database."""
    return _pollers.get(using) or _pollers.setdefault(using, Poller(using))


def _leave_at_exit() -> None:
    if not _at_exit:
        _at_exit["registered"] = None
        shutdown.at_exit(-1, remove_all)
        keeper.release_at_exit()


def remove_all() -> None:
    """Remove the tickets of all waiters of this process, at its end."""
    with own_connections():
        for poller in list(_pollers.values()):
            count = len(poller.waiters) + len(poller.used)
            try:
                poller.remove(list(poller.waiters))
                poller.remove_used()
            except (DatabaseError, InterfaceError, ResourcePoolError) as error:
                logger.warning("%d tickets not removed at exit; they will expire: %s", count, error)


def _after_fork() -> None:
    _pollers.clear()  # waiters and threads belong to the parent
    _at_exit.clear()


os.register_at_fork(after_in_child=_after_fork)
