"""Polls for the waiters of this process: one of the waiting threads looks for all of them.

Leader and followers (Schmidt and others, 2000): the thread that waits longest looks, on its own connection; when it is
served or gives up, the next one takes over. So a single waiter, the usual case, wakes no other thread, and a hundred
cost as many statements as one. Tasks have no thread: a background thread looks for them, unless a waiting thread does.
"""

import logging
import math
import os
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError, connections

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.background import (
    PAUSE_AFTER_FAILURE,
    WAITERS,
    BackgroundThread,
    log_errors,
    own_connections,
)
from resourcepool.db.sync_async import never
from resourcepool.db.timeouts import STATEMENT_TIMEOUT, statement_timeout
from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.leases import shutdown
from resourcepool.leases.keeper import keeper
from resourcepool.waiting.source import limited
from resourcepool.waiting.turn import Turns
from resourcepool.waiting.waiter import Waiter

POLL = 0.5  # seconds: Python may miss a signal that arrives just as the main thread begins to wait
SESSION_KEPT = 1.0  # seconds of waiting after which a thread that does not look closes its session
IDLE = 1.0  # seconds without a waiting task, after which the background thread closes its session

logger = logging.getLogger(__name__)


class Poller:
    """The waiters of this process on one database. Lock-free, like ``Keeper``: one thread at a time takes turns.

    Attributes:
        turns: the waiters, and what is done for them.
        db_error: the error of the last turn, if the database is unavailable.
    """

    def __init__(self, using: str) -> None:
        self.using = using
        self.turns = Turns(using, self.wake)
        self.db_error: Exception | None = None
        # Who may take turns, in order, and how to wake it.
        self._threads: dict[object, Callable[[], None]] = {}
        thread = BackgroundThread(using, WAITERS, idle=IDLE)
        self._for_tasks = thread.routine(WAITERS, self._turn_for_tasks, self._has_tasks)
        self._sleeps_until = self._off_until = 0.0

    # Called by waiting threads and tasks

    def wait(self, waiter: Waiter, stop: Callable[[], bool]) -> None:
        """Wait in this thread until ``waiter`` is served, ``stop()`` is true, or its time is up."""
        began = monotonic()
        try:
            self.join(waiter, waiter.outcome.wake)
            with limited(waiter.request):
                while not (waiter.outcome.decided or waiter.ends_at <= (now := monotonic()) or stop()):
                    due = self._due() if self._leads(waiter) else math.inf
                    if not waiter.keeps_session and math.isinf(due) and now > began + SESSION_KEPT:
                        dialect.close_own_session(connections[self.using])
                    # Wakes up periodically: a signal, or the end of the thread that took turns, may be missed.
                    waiter.outcome.wait(min(POLL, waiter.ends_at - now, due - now))
                    if due <= monotonic() and not waiter.outcome.decided:
                        self.take_turn()
        finally:
            self._resign(waiter)

    def decide(self, waiter: Waiter) -> None:
        """Wait until the database has decided whether the late ``waiter`` was served in time."""
        waiter.is_late, waiter.ends_at, waiter.keeps_session = True, math.inf, True
        if waiter.loop is None:
            self.wait(waiter, never)
        while not waiter.is_done:
            waiter.next_look = 0.0
            self.wake()
            waiter.outcome.wait(POLL)

    def join(self, waiter: Waiter, wake: Callable[[], None] | None = None) -> None:
        """Serve ``waiter``, whose ``outcome`` is set then; ``wake``: wakes its thread, which may take turns."""
        _leave_at_exit()
        self.turns.expect(waiter)
        self.turns.waiters[waiter] = None
        if wake is not None:
            self._threads[waiter] = wake
        else:
            self.start()
            self._threads.setdefault(self, self._for_tasks.wake)
            self._for_tasks.wake()  # always: it may just be leaving ``_threads``
        if min(waiter.next_look, waiter.next_scan) < self._sleeps_until:
            self.wake()

    def start(self) -> None:
        """Start the background thread for tasks; raises RuntimeError if no more threads can be started."""
        _leave_at_exit()
        self._for_tasks.owner.daemon.ensure_started()

    def wake(self) -> None:
        """Wake the thread that takes turns."""
        for wake in list(self._threads.values())[:1]:
            wake()

    def leave(self, waiter: Waiter) -> None:
        """Remove the ticket of a cancelled waiter; its rows go to the next in line."""
        self._resign(waiter)
        if waiter.loop is not None and self._for_tasks.owner.daemon.is_healthy:
            self.turns.waiters[waiter] = None
            self._for_tasks.wake()  # the waiter may not have joined yet
            self.wake()
            return
        with log_errors("the ticket of %s was not removed; it will expire", waiter.holder), statement_timeout():
            try:
                self.turns.remove([waiter])
            except DatabaseUnavailable as error:
                logger.info("the ticket of %s was not removed; it will expire: %s", waiter.holder, error)

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
            self.turns.waiters.pop(waiter, None)
        self.wake()

    # The background thread, for tasks

    def _has_tasks(self) -> bool:
        return any(waiter.loop is not None for waiter in list(self.turns.waiters))

    def _turn_for_tasks(self) -> float:
        if not self._has_tasks():
            self._threads.pop(self, None)
            self.wake()
            return math.inf
        self._threads.setdefault(self, self._for_tasks.wake)
        if not self._leads(self):
            return math.inf
        try:
            if self._due() <= monotonic():
                self.take_turn()
        except Exception as error:
            logger.exception("cannot serve the waiters on database %r", self.using)
            for waiter in list(self.turns.waiters):
                waiter.outcome.fail(error)
        return self._due()

    def _due(self) -> float:
        """Return the time of the next turn."""
        self._sleeps_until = math.inf  # who joins from now on wakes this thread
        self._sleeps_until = due = max(self._off_until, self.turns.due)
        return due

    def take_turn(self) -> None:
        """Serve waiters that were given rows, and do other work that is due."""
        try:
            self.turns.take()
            self.db_error = None
        except DatabaseUnavailable as error:
            if self.db_error is None:
                logger.warning("%s; %d waiters keep waiting", error, len(self.turns.waiters))
            self.db_error, self._off_until = error, monotonic() + PAUSE_AFTER_FAILURE
            for waiter in list(self.turns.waiters):
                waiter.db_error = error
                # Until the next turn has failed, too, callers take their place in line without a statement.
                waiter.pacing.waits_until = self._off_until + STATEMENT_TIMEOUT


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
            count = len(poller.turns.waiters) + len(poller.turns.used)
            try:
                poller.turns.remove(list(poller.turns.waiters))
                poller.turns.remove_used()
            except (DatabaseError, InterfaceError, ResourcePoolError) as error:
                logger.warning("%d tickets not removed at exit; they will expire: %s", count, error)


def _after_fork() -> None:
    _pollers.clear()  # waiters and threads belong to the parent
    _at_exit.clear()


os.register_at_fork(after_in_child=_after_fork)
