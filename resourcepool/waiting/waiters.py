"""Those of this process who wait, and the one thread that looks on behalf of all of them.

So a waiter occupies no database connection, and a hundred waiters cost as many looks as one.
"""

import contextlib
import logging
import math
import os

from django.db import DatabaseError, InterfaceError

from resourcepool.daemon import Daemon
from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.leases import shutdown
from resourcepool.leases.background import contained, own_connections
from resourcepool.leases.clock import monotonic
from resourcepool.leases.keeper import keeper
from resourcepool.waiting.line import USED_AT_MOST, Line
from resourcepool.waiting.notices import notices
from resourcepool.waiting.waiter import Waiter

logger = logging.getLogger(__name__)

PAUSE_AFTER_FAILURE = 0.2  # seconds
IDLE = 10.0  # seconds without a waiter, after which the connections are closed


class Waiters:
    """Every line that somebody in this process stands in, one for each database; without a lock, like ``Keeper``."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._arrivals: dict[Waiter, None] = {}
        self._served: dict[Waiter, None] = {}
        self._thread = Daemon("waiters", self._loop)
        self._leaves_at_exit = False

    def join(self, waiter: Waiter) -> None:
        """Look on behalf of ``waiter``; its ``outcome`` is set once it has been served."""
        if waiter.ticket is not None:
            notices.add(waiter.using, waiter.ticket.pk)
        self._start()  # before: without a thread (RuntimeError) nobody would ever serve it
        self._arrivals[waiter] = None
        waiter.has_joined = True
        notices.alarm.bring_forward(min(waiter.look_at, waiter.free_at))

    def see_off(self, waiter: Waiter) -> None:
        """Have the ticket of ``waiter``, which has given up, removed; what it was given goes to the next in line."""
        if waiter.has_joined and self._thread.is_well:
            notices.alarm.ring()
            return
        try:
            self.join(waiter)
        except RuntimeError:  # no more threads: else its ticket would keep what it is given until it lapses
            with contained("the ticket of %s is not removed, it lapses", waiter.holder):
                Line(waiter.using).leave([waiter])

    def used(self, waiter: Waiter) -> None:
        """Have the ticket of ``waiter``, which has been served at once, removed with others."""
        self._served[waiter] = None
        with contextlib.suppress(RuntimeError):  # no more threads: it lapses
            self._start()
        notices.alarm.bring_forward(monotonic() + USED_AT_MOST)

    def trouble(self, using: str) -> Exception | None:
        """Return what keeps the waiters on this database from being served just now, if anything does."""
        line = self._lines.get(using)
        return line.trouble if line is not None and line.waiters else None

    def _start(self) -> None:
        if not self._leaves_at_exit:
            shutdown.at_exit(-1, self._leave_at_exit)
            keeper.release_at_exit()
            self._leaves_at_exit = True
        self._thread.see_to()

    def _loop(self) -> None:
        with own_connections() as own:
            while True:
                notices.alarm.reset()
                with own.turn:
                    wake_at = self._serve_once()
                is_idle = math.isinf(wake_at) and own.are_open
                notices.alarm.sleep_until(monotonic() + IDLE if is_idle else wake_at)
                if is_idle and not self._arrivals:
                    with own.turn:
                        own.close()

    def _serve_once(self) -> float:
        """Take a turn of every line; return when to look again."""
        self._admit()
        noticed = notices.take()
        return min((self._turn(line, noticed) for line in list(self._lines.values())), default=math.inf)

    def _admit(self) -> None:
        for waiter in list(self._arrivals):
            del self._arrivals[waiter]
            if waiter not in (
                those := self._line(waiter.using).waiters
            ):  # interrupted, one may have come twice
                those.append(waiter)
        for waiter in list(self._served):
            del self._served[waiter]
            self._line(waiter.using).drop(waiter)

    def _line(self, using: str) -> Line:
        return self._lines.get(using) or self._lines.setdefault(using, Line(using))

    def _turn(self, line: Line, noticed: bool) -> float:
        if line.is_off_until > monotonic():
            return line.is_off_until
        try:
            wake_at = line.turn(noticed=noticed)
            line.trouble = None
        except DatabaseUnavailable as error:
            if line.trouble is None:
                logger.warning("%s; %d waiters stay in line", error, len(line.waiters))
            line.trouble, line.is_off_until = error, monotonic() + PAUSE_AFTER_FAILURE
            return line.is_off_until
        except Exception as error:
            logger.exception("cannot serve the waiters on database %r", line.using)
            line.fail(error)
            return math.inf
        return wake_at

    def _leave_at_exit(self) -> None:
        self._admit()
        with own_connections():
            for line in self._lines.values():
                try:
                    line.close()
                except (DatabaseError, InterfaceError, ResourcePoolError) as error:
                    logger.warning("%d tickets not removed at exit, they lapse: %s", len(line.waiters), error)


def _after_fork() -> None:
    waiters.__init__()  # type: ignore[misc]  # the parent's waiters and thread are not the child's


waiters = Waiters()
os.register_at_fork(after_in_child=_after_fork)
