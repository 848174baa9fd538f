"""One thread per process that looks on behalf of everybody in this process who waits.

So a waiter occupies no database connection, and a hundred waiters cost as many queries as one.
"""

import logging
import math
import os
import threading

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases import background
from resourcepool.leases.alarm import Alarm
from resourcepool.leases.background import own_connections
from resourcepool.leases.clock import monotonic
from resourcepool.leases.keeper import keeper
from resourcepool.leases.line import Line
from resourcepool.leases.table import Model
from resourcepool.leases.waiting import Request, Waiter

logger = logging.getLogger(__name__)

PAUSE_AFTER_FAILURE = 0.2  # seconds
MOST_LINES = 100  # kept for the pace they have learned, though nobody stands in them
IDLE = 1.0  # seconds without a waiter, after which the connections are closed


class Poller:
    """Every line that somebody in this process stands in."""

    def __init__(self) -> None:
        self._lines: dict[tuple[Model, str, str], Line] = {}
        self._arrivals: list[Waiter] = []
        self._lock = threading.Lock()
        self._alarm = Alarm()
        self._thread: threading.Thread | None = None

    def join(self, request: Request) -> Waiter:
        """Stand in line; the waiter's ``outcome`` is set once it has been served."""
        waiter = Waiter(request)
        keeper.release_at_exit()  # here, because the thread may be about to take a ticket when the process ends
        with self._lock:
            self._arrivals.append(waiter)
            if self._thread is None or not self._thread.is_alive():
                try:
                    self._thread = background.start("poller", self._loop)
                except RuntimeError:  # no more threads: nobody would ever serve it
                    self._arrivals.remove(waiter)
                    raise
        self._alarm.ring()
        return waiter

    def look_now(self, model: Model, using: str) -> None:
        """Something of this pool came free here, or a waiter left: look without delay."""
        for line in self._lines_for(model, using):
            line.look_at = 0.0
            self._alarm.ring()

    def trouble(self, model: Model, using: str) -> Exception | None:
        """Return what keeps this pool's waiters from being served just now, if anything does."""
        return next((line.trouble for line in self._lines_for(model, using) if line.trouble), None)

    def is_alive(self) -> bool:
        """Tell whether the thread runs (also true before the first waiter)."""
        return self._thread is None or self._thread.is_alive()

    def _loop(self) -> None:
        with own_connections() as own:
            while True:
                self._alarm.reset()
                self._admit()
                wake_at = math.inf
                for line in self._lines.values():
                    with own.turn:
                        wake_at = min(wake_at, self._turn(line))
                if math.isinf(wake_at) and own.are_open:
                    self._alarm.sleep_until(monotonic() + IDLE)
                    if not self._arrivals:
                        with own.turn:
                            own.close()
                else:
                    self._alarm.sleep_until(wake_at)

    def _admit(self) -> None:
        with self._lock:
            arrivals, self._arrivals = self._arrivals, []
            if len(self._lines) > MOST_LINES:
                self._lines = {which: line for which, line in self._lines.items() if line.waiters}
            for waiter in arrivals:
                which = (waiter.request.model, waiter.request.using, waiter.request.selector)
                if which not in self._lines:
                    self._lines[which] = Line(*which)
                self._lines[which].waiters.append(waiter)
                self._lines[which].look_at = 0.0

    def _lines_for(self, model: Model, using: str) -> list[Line]:
        if not self._lines:
            return []
        with self._lock:
            return [line for which, line in self._lines.items() if which[:2] == (model, using) and line.waiters]

    def _turn(self, line: Line) -> float:
        if line.look_at > monotonic():
            return line.look_at
        line.look_at = math.inf  # before looking, so that a look_now() meanwhile is not lost
        try:
            return line.look()
        except DatabaseUnavailable as error:
            if line.trouble is None:
                logger.warning("%s; %d waiters for %s stay in line", error, len(line.waiters), line.label)
            line.trouble = error
            line.look_at = monotonic() + PAUSE_AFTER_FAILURE
            return line.look_at
        except Exception as error:
            logger.exception("cannot serve the waiters for %s", line.label)
            line.fail(error)
            return math.inf


def _after_fork() -> None:
    poller.__init__()  # type: ignore[misc]  # the parent's waiters and thread are not the child's


poller = Poller()
os.register_at_fork(after_in_child=_after_fork)
