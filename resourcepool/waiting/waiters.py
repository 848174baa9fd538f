"""The waiters of this process, and one thread per database that polls for all of them.

So a waiter needs no database connection, and a hundred waiters cost as many queries as one.
"""

import contextlib
import logging
import math
import os
from collections import defaultdict
from collections.abc import Collection
from functools import partial

from django.db import DatabaseError, InterfaceError

from resourcepool.database.background import log_errors, own_connections
from resourcepool.database.clock import monotonic
from resourcepool.database.loop import PAUSE_AFTER_FAILURE, Loop
from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.leases import shutdown
from resourcepool.leases.keeper import keeper
from resourcepool.waiting.ticket_wakeups import ticket_wakeups
from resourcepool.waiting.waiter import Waiter
from resourcepool.waiting.waiter_loop import MAX_SERVED_DELAY, WaiterLoop

logger = logging.getLogger(__name__)

POLL = 0.5  # seconds
IDLE = 10.0  # seconds without a waiter, after which the thread closes its connection


class Waiters:
    """All waiters of this process, by database; without a lock, like ``Keeper``.

    Attributes:
        unavailable: the loops whose database is unavailable at the moment.
    """

    def __init__(self) -> None:
        self._waiter_loops: dict[str, WaiterLoop] = {}
        self._threads: dict[str, Loop] = {}
        self._arrivals: defaultdict[str, dict[Waiter, None]] = defaultdict(dict)
        self._served: defaultdict[str, dict[Waiter, None]] = defaultdict(dict)
        self.unavailable: dict[str, WaiterLoop] = {}
        self._leaves_at_exit = False

    def join(self, waiter: Waiter) -> None:
        """Serve ``waiter`` in the background; its ``outcome`` is set once it has been served."""
        self._start(waiter.using)  # first: it may raise RuntimeError (no more threads)
        self._arrivals[waiter.using][waiter] = None
        waiter.has_joined = True
        if waiter.ticket is not None:  # last: an earlier wake-up would find no waiter for the ticket
            ticket_wakeups.add(waiter.using, waiter.ticket.pk)
        ticket_wakeups.wakeup(waiter.using).bring_forward(min(waiter.next_check, waiter.next_scan))

    def cancel(self, waiter: Waiter) -> None:
        """Remove the ticket of a cancelled ``waiter``; its rows go to the next waiter."""
        if waiter.has_joined and self._threads[waiter.using].is_alive:
            ticket_wakeups.wakeup(waiter.using).wake()
            return
        try:
            self.join(waiter)
        except RuntimeError:  # no more threads: remove the ticket here, so that it does not keep its rows
            with log_errors("the ticket of %s was not removed; it will expire", waiter.holder):
                WaiterLoop(waiter.using).leave([waiter])

    def decide(self, waiter: Waiter) -> None:
        """Wait until the database has decided whether the late ``waiter`` was served in time."""
        waiter.is_late = True
        while not waiter.is_done:
            self._start(waiter.using)
            ticket_wakeups.wakeup(waiter.using).wake()
            waiter.outcome.wait(POLL)

    def used(self, waiter: Waiter) -> None:
        """Remove the ticket of ``waiter``, which was served in its own thread, later together with others."""
        self._served[waiter.using][waiter] = None
        loop = self._threads.get(waiter.using)
        if loop is None or not loop.thread.is_running:
            with contextlib.suppress(RuntimeError):  # no more threads: the ticket expires
                self._start(waiter.using)
        ticket_wakeups.wakeup(waiter.using).bring_forward(monotonic() + MAX_SERVED_DELAY)

    def has_waiters(self, using: str) -> bool:
        """Whether the thread already polls this database; then the same queries serve one more waiter."""
        line = self._waiter_loops.get(using)
        return line is not None and bool(line.waiters)

    def error_on(self, using: str) -> Exception | None:
        """Return the current error of this database, if it is unavailable."""
        line = self.unavailable.get(using)
        return line.db_error if line is not None and line.waiters else None

    def _start(self, using: str) -> None:
        if not self._leaves_at_exit:
            shutdown.at_exit(-1, self._leave_at_exit)
            keeper.release_at_exit()
            self._leaves_at_exit = True
        if (loop := self._threads.get(using)) is None:
            turn, has_work = partial(self._serve_once, using), partial(self._has_work, using)
            new = Loop(f"waiters-{using}", ticket_wakeups.wakeup(using), turn, has_work, idle_timeout=IDLE)
            loop = self._threads.setdefault(using, new)
        loop.start()

    def _has_work(self, using: str) -> bool:
        line = self._waiter_loops.get(using)
        in_line = line is not None and (line.waiters or line.used)
        return bool(in_line or self._arrivals.get(using) or self._served.get(using))

    def _serve_once(self, using: str) -> float:
        """Take a turn of the loop for this database; returns the time of the next turn."""
        noticed = ticket_wakeups.take(using)  # first: later wake-ups may be for waiters that join meanwhile
        return self._turn(self._admit(using), noticed)

    def _admit(self, using: str) -> WaiterLoop:
        line = self._waiter_loops.get(using) or self._waiter_loops.setdefault(using, WaiterLoop(using))
        for waiter in list(arrivals := self._arrivals[using]):
            del arrivals[waiter]
            if waiter not in line.waiters:  # an interrupted waiter may have joined twice
                line.waiters.append(waiter)
        for waiter in list(served := self._served[using]):
            del served[waiter]
            line.drop(waiter)
        return line

    def _turn(self, line: WaiterLoop, noticed: Collection[int]) -> float:
        if line.is_off_until > monotonic():
            return line.is_off_until
        try:
            wake_at = line.turn(noticed)
            line.db_error = None
            self.unavailable.pop(line.using, None)
        except DatabaseUnavailable as error:
            if line.db_error is None:
                logger.warning("%s; %d waiters keep waiting", error, len(line.waiters))
            self.unavailable[line.using] = line
            line.db_error, line.is_off_until = error, monotonic() + PAUSE_AFTER_FAILURE
            return line.is_off_until
        except Exception as error:
            logger.exception("cannot serve the waiters on database %r", line.using)
            line.fail(error)
            return math.inf
        return wake_at

    def _leave_at_exit(self) -> None:
        with own_connections():
            for using in list(self._threads):
                line = self._admit(using)
                try:
                    line.close()
                except (DatabaseError, InterfaceError, ResourcePoolError) as error:
                    logger.warning(
                        "%d tickets not removed at exit; they will expire: %s", line.ticket_count, error
                    )


def _after_fork() -> None:
    waiters.__init__()  # type: ignore[misc]  # waiters and threads belong to the parent


waiters = Waiters()
os.register_at_fork(after_in_child=_after_fork)
