"""Writes events into the history a moment later, many at once.

Acquiring and releasing only append to a list. After five seconds the next release writes them, on its own session: so a
busy process needs no other one. If none comes, the background thread of the database does.
"""

import contextlib
import logging
import math
import random
import threading
from collections import deque
from typing import Any

from django.db import connections, router

from resourcepool.clock import monotonic
from resourcepool.db.background import HISTORY, Routine, background_thread, own_connections
from resourcepool.db.threads import per_process
from resourcepool.db.timeouts import statement_timeout
from resourcepool.history.models import Event
from resourcepool.history.writer import merge_events, write, write_gap
from resourcepool.leases.shutdown import at_exit
from resourcepool.signals import EventKind, RowEvent, exit_hooks, recorders

EVERY = 5.0  # seconds until an event is written, and after a failure; a longer lease has an event of its acquisition
SPREAD = 0.5  # an event may be written earlier by this random share, so that processes do not write together
RELEASES_FIRST = (
    1.0  # seconds for which a release may write them, on its session, before the background thread does
)
BATCH = 500  # events per statement; this many are written at once
MAX_WAITING = 20_000  # waiting events; further ones are dropped
MAX_WAITING_OPERATOR = 200_000  # the same for operators' events, because one action may change a whole pool

logger = logging.getLogger(__name__)


class Recorder:
    """The unwritten events of this process; ``dropped``: number of dropped events not reported yet."""

    def __init__(self) -> None:
        self.dropped = 0
        self._waiting: deque[RowEvent] = deque()
        self._in_hand = 0  # events that are being written
        self._flush_at = 0.0  # not earlier, after a failure of the database
        self._early = 0.0  # share of ``EVERY``
        self._database: Any = None
        self._writing = threading.RLock()  # a signal may interrupt the main thread that holds it
        self._routine: Routine | None = None
        self._writes_at_exit = False

    def note(self, event: RowEvent) -> None:
        """Queue ``event`` to be written."""
        if not self._waiting:
            self._check_database()
            self._early = SPREAD * random.random()  # noqa: S311 (no secret)
        if len(self._waiting) + self._in_hand >= (MAX_WAITING_OPERATOR if event.actor else MAX_WAITING):
            if not self.dropped:
                logger.error(
                    "%d events are waiting to be written: further events are dropped", len(self._waiting)
                )
            self.dropped += 1
            return
        self._waiting.append(event)
        if (routine := self._routine) is None or not routine.owner.daemon.is_running:
            self._start()
        elif len(self._waiting) in (1, BATCH):
            routine.bring_forward(self._due_at + RELEASES_FIRST)
        # Not after a failure: the next attempt must not delay a release.
        if event.kind is EventKind.RELEASED and not self._flush_at and self._due_at <= monotonic():
            self._write_after_release(event.using)

    @property
    def is_idle(self) -> bool:
        """Whether all events are written."""
        return not self._waiting and not self._in_hand

    def forget(self) -> None:
        """Drop the waiting events."""
        self._waiting.clear()
        self.dropped = 0

    def flush(self) -> None:
        """Write all waiting events now, on this thread's connections, after any write of another thread.

        Raises:
            DatabaseUnavailable: unwritten events keep waiting.
        """
        with self._writing:
            for _ in range(len(self._waiting) // BATCH + 1):
                self._write_batch()

    def flush_within(self, seconds: float) -> None:
        """Write the waiting events of a process that ends without atexit; give up after ``seconds``."""
        if not self.is_idle:
            thread = threading.Thread(target=self._last_flush, name="resourcepool-last-events", daemon=True)
            thread.start()
            thread.join(seconds)

    def _write_after_release(self, using: str) -> None:
        """Write the waiting events on this thread's session, which has just released a lease, if it can be used."""
        connection = connections[using]
        is_free = connection.connection is not None and connection.autocommit and not connection.in_atomic_block
        if is_free and using == router.db_for_write(Event):
            with statement_timeout(RELEASES_FIRST):
                self._turn(0.0)

    def _write_batch(self) -> None:
        self._check_database()
        events = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH))]
        self._in_hand = len(events)
        try:
            if entries := merge_events(events):
                write(entries)
        except BaseException:  # including those of a signal handler
            self._waiting.extendleft(reversed(events))
            raise
        finally:
            self._in_hand = 0
        if self.dropped and not self._waiting:
            count = self.dropped
            write_gap(count)
            self.dropped -= count
            logger.error("%d events were dropped; new events are recorded again", count)

    def _check_database(self) -> None:
        """Drop the events for another database: a test database that no longer exists."""
        if (database := _database()) != self._database:
            self.forget()
            self._database, self._routine = database, None

    def _start(self) -> None:
        if not self._writes_at_exit:
            at_exit(1, self._last_flush)
            self._writes_at_exit = True
        thread = background_thread(router.db_for_write(Event))
        self._routine = thread.routine(HISTORY, self._turn, lambda: not self.is_idle or self.dropped > 0)
        # RuntimeError: no more threads can start; retried with the next event, or at exit.
        with contextlib.suppress(RuntimeError):
            thread.daemon.ensure_started()
        self._routine.bring_forward(self._due_at + RELEASES_FIRST)

    def _turn(self, later: float = RELEASES_FIRST) -> float:
        """Write the first waiting events if they are due since ``later`` seconds; return when to run again."""
        if not self._writing.acquire(blocking=False):  # another thread writes: waiting would delay renewals
            return monotonic() + EVERY
        try:
            if self._due_at + later <= monotonic():
                self._write_batch()
                self._flush_at = 0.0
        except Exception as error:  # noqa: BLE001 (drivers raise various errors)
            why = f"{type(error).__name__}: {error}"
            logger.warning("%d events could not be written yet: %s", len(self._waiting), why)
            self._flush_at = monotonic() + EVERY
        finally:
            self._writing.release()
        return self._due_at + later

    @property
    def _due_at(self) -> float:
        """When to write: at once if a batch waits, otherwise ``EVERY`` after its first event."""
        if len(self._waiting) >= BATCH:
            return self._flush_at
        try:
            return max(self._flush_at, self._waiting[0].at + EVERY * (1 - self._early))
        except IndexError:
            return self._flush_at if self.dropped else math.inf

    def _last_flush(self) -> None:
        if self.is_idle and not self.dropped:
            return
        with own_connections():
            try:
                self.flush()
            except Exception as error:  # noqa: BLE001 (the process ends)
                count = len(self._waiting) + self.dropped
                logger.warning("%d events were not written: %s: %s", count, type(error).__name__, error)


def _database() -> Any:
    return connections.settings[router.db_for_write(Event)].get("NAME")


def listen() -> None:
    """Record all events of this process from now on."""
    if recorder.note not in recorders:
        recorders.append(recorder.note)
        exit_hooks.append(recorder.flush_within)


recorder = per_process(Recorder)  # the parent writes its own events
