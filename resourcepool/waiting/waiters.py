"""The waiters of this process, and the thread for each database that looks on behalf of all of them.

So a waiter occupies no database connection, and a hundred waiters cost as many looks as one.
"""

import contextlib
import logging
import math
import os
from collections import defaultdict
from collections.abc import Collection
from functools import partial

from django.db import DatabaseError, InterfaceError

from resourcepool.database.background import contained, own_connections
from resourcepool.database.clock import monotonic
from resourcepool.database.loop import PAUSE_AFTER_FAILURE, Loop
from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.leases import shutdown
from resourcepool.leases.keeper import keeper
from resourcepool.waiting.line import USED_AT_MOST, Line
from resourcepool.waiting.notices import notices
from resourcepool.waiting.waiter import Waiter

logger = logging.getLogger(__name__)

NAP = 0.5  # seconds
IDLE = 10.0  # seconds without a waiter, after which a connection is closed


class Waiters:
    """All lines of this process, one for each database; without a lock, like ``Keeper``.

    Attributes:
        in_trouble: the lines whose database did not answer just now.
    """

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._loops: dict[str, Loop] = {}
        self._arrivals: defaultdict[str, dict[Waiter, None]] = defaultdict(dict)
        self._served: defaultdict[str, dict[Waiter, None]] = defaultdict(dict)
        self.in_trouble: dict[str, Line] = {}
        self._leaves_at_exit = False

    def join(self, waiter: Waiter) -> None:
        """Look on behalf of ``waiter``; its ``outcome`` is set once it has been served."""
        self._start(waiter.using)  # first: without a thread (RuntimeError) nobody would ever serve it
        self._arrivals[waiter.using][waiter] = None
        waiter.has_joined = True
        if waiter.ticket is not None:  # last: a notice that comes before would be for nobody in line
            notices.add(waiter.using, waiter.ticket.pk)
        notices.wakeup(waiter.using).bring_forward(min(waiter.look_at, waiter.free_at))

    def see_off(self, waiter: Waiter) -> None:
        """Remove the ticket of ``waiter``, which has given up; its rows go to the next in line."""
        if waiter.has_joined and self._loops[waiter.using].is_alive:
            notices.wakeup(waiter.using).ring()
            return
        try:
            self.join(waiter)
        except RuntimeError:  # no more threads: otherwise its ticket would keep its rows until it expires
            with contained("the ticket of %s is not removed, it lapses", waiter.holder):
                Line(waiter.using).leave([waiter])

    def decide(self, waiter: Waiter) -> None:
        """Return once the database has decided whether ``waiter``, whose time is up, was served before."""
        waiter.is_late = True
        while not waiter.has_left:
            self._start(waiter.using)
            notices.wakeup(waiter.using).ring()
            waiter.outcome.wait(NAP)

    def used(self, waiter: Waiter) -> None:
        """Remove the ticket of ``waiter``, which has been served at once, together with others."""
        self._served[waiter.using][waiter] = None
        loop = self._loops.get(waiter.using)
        if loop is None or not loop.thread.is_running:
            with contextlib.suppress(RuntimeError):  # no more threads: it expires
                self._start(waiter.using)
        notices.wakeup(waiter.using).bring_forward(monotonic() + USED_AT_MOST)

    def look_already(self, using: str) -> bool:
        """Tell whether others of this process are looked for on this database: the same looks serve one more."""
        line = self._lines.get(using)
        return line is not None and bool(line.waiters)

    def trouble(self, using: str) -> Exception | None:
        """Return the error that keeps the waiters on this database from being served at the moment, if any."""
        line = self.in_trouble.get(using)
        return line.trouble if line is not None and line.waiters else None

    def _start(self, using: str) -> None:
        if not self._leaves_at_exit:
            shutdown.at_exit(-1, self._leave_at_exit)
            keeper.release_at_exit()
            self._leaves_at_exit = True
        if (loop := self._loops.get(using)) is None:
            turn, has_work = partial(self._serve_once, using), partial(self._has_work, using)
            new = Loop(f"waiters-{using}", notices.wakeup(using), turn, has_work, rests_after=IDLE)
            loop = self._loops.setdefault(using, new)
        loop.start()

    def _has_work(self, using: str) -> bool:
        line = self._lines.get(using)
        in_line = line is not None and (line.waiters or line.used)
        return bool(in_line or self._arrivals.get(using) or self._served.get(using))

    def _serve_once(self, using: str) -> float:
        """Take a turn of the line on this database; return when to look again."""
        noticed = notices.take(using)  # first: what comes later is for those who join meanwhile, too
        return self._turn(self._admit(using), noticed)

    def _admit(self, using: str) -> Line:
        line = self._lines.get(using) or self._lines.setdefault(using, Line(using))
        for waiter in list(arrivals := self._arrivals[using]):
            del arrivals[waiter]
            if waiter not in line.waiters:  # an interrupted waiter may have joined twice
                line.waiters.append(waiter)
        for waiter in list(served := self._served[using]):
            del served[waiter]
            line.drop(waiter)
        return line

    def _turn(self, line: Line, noticed: Collection[int]) -> float:
        if line.is_off_until > monotonic():
            return line.is_off_until
        try:
            wake_at = line.turn(noticed)
            line.trouble = None
            self.in_trouble.pop(line.using, None)
        except DatabaseUnavailable as error:
            if line.trouble is None:
                logger.warning("%s; %d waiters stay in line", error, len(line.waiters))
            self.in_trouble[line.using] = line
            line.trouble, line.is_off_until = error, monotonic() + PAUSE_AFTER_FAILURE
            return line.is_off_until
        except Exception as error:
            logger.exception("cannot serve the waiters on database %r", line.using)
            line.fail(error)
            return math.inf
        return wake_at

    def _leave_at_exit(self) -> None:
        with own_connections():
            for using in list(self._loops):
                line = self._admit(using)
                try:
                    line.close()
                except (DatabaseError, InterfaceError, ResourcePoolError) as error:
                    logger.warning("%d tickets not removed at exit, they lapse: %s", line.ticket_count, error)


def _after_fork() -> None:
    waiters.__init__()  # type: ignore[misc]  # the parent's waiters and thread are not the child's


waiters = Waiters()
os.register_at_fork(after_in_child=_after_fork)
